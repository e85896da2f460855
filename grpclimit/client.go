package grpclimit

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/outgoing"
)

// longestWait bounds what a server can make its callers wait: a RetryInfo beyond it counts as this much.
const longestWait = time.Hour

// Client paces calls to somebody else's server: each waits until the limiter lets one unit pass, and until the latest
// time that the server has named in a RetryInfo, of RESOURCE_EXHAUSTED or UNAVAILABLE, has come.
//
// A call that would wait beyond its context's deadline fails with DEADLINE_EXCEEDED as soon as that is known, and charges
// nothing; one whose store cannot decide fails with UNAVAILABLE. These errors have a gRPC status and wrap their cause;
// see [sluice.Limiter.Wait]. What the server answers is returned as it comes: a refusal is the caller's to retry. Retries
// that gRPC makes itself, by a service config, are below the interceptors and take no unit.
//
// A Client is safe for concurrent use. A RetryInfo holds for all its calls that are not under way yet, so use one for
// each server. They then wait for the limiter in any order.
type Client struct{ turn outgoing.Turn }

// NewClient returns a Client whose calls take units of l for subject.
func NewClient(l *sluice.Limiter, subject string) *Client {
	return &Client{outgoing.Turn{Limiter: l, Subject: subject}}
}

// UnaryClientInterceptor returns the interceptor of unary calls, for grpc.WithChainUnaryInterceptor.
func (c *Client) UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if err := c.turn.Wait(ctx); err != nil {
			return notSent(ctx, err)
		}
		err := invoker(ctx, method, req, reply, cc, opts...)
		c.obey(err)
		return err
	}
}

// StreamClientInterceptor returns the interceptor of streams, for grpc.WithChainStreamInterceptor. A stream waits before
// it begins, and takes one unit.
func (c *Client) StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if err := c.turn.Wait(ctx); err != nil {
			return nil, notSent(ctx, err)
		}
		cs, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			c.obey(err)
			return nil, err
		}
		return &clientStream{ClientStream: cs, client: c}, nil
	}
}

// clientStream reads how the stream ends.
type clientStream struct {
	grpc.ClientStream
	client *Client
}

func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.client.obey(err)
	return err
}

// obey begins the pause that a server's answer asks for, if it does.
func (c *Client) obey(err error) {
	if err == nil {
		return
	}
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.ResourceExhausted && st.Code() != codes.Unavailable {
		return
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			c.turn.Pause(min(info.GetRetryDelay().AsDuration(), longestWait))
		}
	}
}

// unsent is why a call was not sent: a gRPC status to those who ask for one, and the cause to errors.Is.
type unsent struct {
	code  codes.Code
	cause error
}

func notSent(ctx context.Context, cause error) error {
	code := codes.Unavailable
	switch {
	case errors.Is(cause, sluice.ErrUnavailable) && ctx.Err() == nil: // it may wrap DeadlineExceeded: the store's own
	case errors.Is(cause, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(cause, context.Canceled):
		code = codes.Canceled
	}
	return &unsent{code, cause}
}

// Error returns grpclimit: not sent: cause.
func (e *unsent) Error() string { return "grpclimit: not sent: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *unsent) Unwrap() error { return e.cause }

// GRPCStatus is how package status finds the status.
func (e *unsent) GRPCStatus() *status.Status { return status.New(e.code, e.Error()) }
