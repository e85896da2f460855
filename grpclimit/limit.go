package grpclimit

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// Unary returns an interceptor of unary calls that takes one unit of l for each, counted by subject, before the handler
// runs. It chains with others of its form:
//
//	grpc.ChainUnaryInterceptor(grpclimit.Unary(perIP, policy.IP()), grpclimit.Unary(perKey, policy.Header("x-api-key")))
//
// In a chain each limit is charged as it is reached: one that refuses leaves those before it charged. For all or none,
// use rules and [New]. A call without the subject (it is "") is counted by its peer's address, so that those who leave
// metadata out share no budget. A nil subject is policy.IP().
//
// The request that a subject gets is the call, as the package comment says; its context is the call's, for what other
// interceptors have put there, and its TLS is the peer's. See the package comment also for refusals.
func Unary(l *sluice.Limiter, subject policy.Subject) grpc.UnaryServerInterceptor {
	g := newGate(l, subject)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := g.enter(ctx, info.FullMethod); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
}

// Stream is [Unary] for streams: one unit for each, when it begins.
func Stream(l *sluice.Limiter, subject policy.Subject) grpc.StreamServerInterceptor {
	g := newGate(l, subject)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if err := g.enter(ss.Context(), info.FullMethod); err != nil {
			return err
		}
		return handler(srv, ss)
	}
}

// gate is one limiter in front of a server.
type gate struct {
	limiter *sluice.Limiter
	subject policy.Subject
}

func newGate(l *sluice.Limiter, subject policy.Subject) gate {
	if subject == nil {
		subject = policy.IP()
	}
	return gate{l, policy.Or(subject, policy.IP())}
}

// enter decides a call. The error is the status to answer with; nil: the call may go on, and has been held.
func (g gate) enter(ctx context.Context, method string) error {
	r := request(ctx, method)
	r.Header = header(ctx)
	ask := g.limiter.Ask(g.subject(r), 1)
	d, err := g.limiter.Allow(ctx, ask.Key.Subject)
	if err != nil || ctx.Err() != nil { // a fallback decides all the same; nobody waits for the handler
		return undecided(ctx)
	}
	if !d.Allowed {
		return refusal{ask: ask, wait: d.RetryAfter}.send(ctx)
	}
	if err := d.Hold(ctx); err != nil {
		return left(err)
	}
	return nil
}
