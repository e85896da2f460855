package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

const (
	unaryMethod  = "/grpc.testing.TestService/UnaryCall"
	outputMethod = "/grpc.testing.TestService/StreamingOutputCall"
)

// clock is a time that only its test moves.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time       { return time.Unix(0, c.now.Load()) }
func (c *clock) Step(d time.Duration) { c.now.Add(int64(d)) }

func newStore(c *clock) *local.Store { return local.New(local.Options{Clock: c.Now}) }

// handlers are a server's handlers: one call of each kind.
type handlers struct {
	testpb.UnimplementedTestServiceServer
	calls  atomic.Int64
	unary  func(ctx context.Context) error         // nil: answers at once
	stream func(grpc.ServerStream) error           // nil: two messages
	began  func(ctx context.Context, at time.Time) // nil: nobody asks
}

func (s *handlers) begin(ctx context.Context) {
	s.calls.Add(1)
	if s.began != nil {
		s.began(ctx, time.Now())
	}
}

func (s *handlers) UnaryCall(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	s.begin(ctx)
	if s.unary != nil {
		if err := s.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &testpb.SimpleResponse{}, nil
}

func (s *handlers) StreamingOutputCall(_ *testpb.StreamingOutputCallRequest, out testpb.TestService_StreamingOutputCallServer) error {
	s.begin(out.Context())
	if s.stream != nil {
		return s.stream(out)
	}
	for range 2 {
		if err := out.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *handlers) StreamingInputCall(in testpb.TestService_StreamingInputCallServer) error {
	s.begin(in.Context())
	for {
		_, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return in.SendAndClose(&testpb.StreamingInputCallResponse{})
		}
		if err != nil {
			return err
		}
	}
}

func (s *handlers) FullDuplexCall(both testpb.TestService_FullDuplexCallServer) error {
	s.begin(both.Context())
	for {
		_, err := both.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := both.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// peerKey is metadata by which a test's client says what address it has; the wire in memory has none.
const peerKey = "x-test-peer"

func placed(ctx context.Context) context.Context {
	addr := metadata.ValueFromIncomingContext(ctx, peerKey)
	if len(addr) == 0 {
		return ctx
	}
	return peer.NewContext(ctx, &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr[0]))})
}

type placedStream struct{ grpc.ServerStream }

func (s placedStream) Context() context.Context { return placed(s.ServerStream.Context()) }

// serve starts a real server with the interceptors, and returns a client of it.
func serve(t testing.TB, svc *handlers, unary grpc.UnaryServerInterceptor, stream grpc.StreamServerInterceptor, dial ...grpc.DialOption) testpb.TestServiceClient {
	t.Helper()
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
				defer recovered(&err)
				return handler(placed(ctx), req)
			}, unary),
		grpc.ChainStreamInterceptor(
			func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
				defer recovered(&err)
				return handler(srv, placedStream{ss})
			}, stream),
	)
	testpb.RegisterTestServiceServer(server, svc)
	wire := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- server.Serve(wire) }()
	dial = append(dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///api.example", dial...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return testpb.NewTestServiceClient(conn)
}

// recovered turns a handler's panic into a status, as servers do that want to live on.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = status.Errorf(codes.Internal, "panic: %v", v)
	}
}

// guarded starts a server under rules.
func guarded(t testing.TB, rules *policy.Rules, s sluice.Store, svc *handlers) testpb.TestServiceClient {
	t.Helper()
	i := grpclimit.New(grpclimit.Options{Rules: rules, Stores: everywhere(s)})
	return serve(t, svc, i.UnaryServerInterceptor(), i.StreamServerInterceptor())
}

// everywhere is one store for every on_outage.
func everywhere(s sluice.Store) map[policy.OnOutage]sluice.Store {
	return map[policy.OnOutage]sluice.Store{policy.Local: s, policy.Allow: s, policy.Deny: s}
}

// patience ends a test's call that hangs.
const patience = 30 * time.Second

// with is a call's context with metadata, given as key, value, key, value.
func with(t testing.TB, pairs ...string) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return metadata.NewOutgoingContext(ctx, metadata.Pairs(pairs...))
}

func from(t testing.TB, addr string, pairs ...string) context.Context {
	return with(t, append(pairs, peerKey, addr)...)
}

func call(ctx context.Context, c testpb.TestServiceClient, o ...grpc.CallOption) error {
	_, err := c.UnaryCall(ctx, &testpb.SimpleRequest{}, o...)
	return err
}

// output reads a stream to its end.
func output(ctx context.Context, c testpb.TestServiceClient, o ...grpc.CallOption) error {
	stream, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{}, o...)
	if err != nil {
		return err
	}
	for {
		_, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func wantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
}

// details returns what a refusal says; nil where it says nothing of the kind.
func details(err error) (retry *errdetails.RetryInfo, quota *errdetails.QuotaFailure) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			quota = d
		}
	}
	return retry, quota
}

func newRules(t testing.TB, rules ...policy.RuleConfig) *policy.Rules {
	t.Helper()
	return compiled(t, policy.Config{Rules: rules})
}

func compiled(t testing.TB, c policy.Config) *policy.Rules {
	t.Helper()
	r, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// limit is one limit of a rule; the burst of the bucket and the queue is the limit's, else its count.
func limit(t testing.TB, algorithm, text, subject string, burst ...int64) policy.LimitConfig {
	t.Helper()
	l := sluice.Must(sluice.ParseLimit(text))
	if algorithm == "token_bucket" || algorithm == "leaky_bucket" {
		l.Burst = l.Count
	}
	if len(burst) > 0 {
		l.Burst = burst[0]
	}
	return policy.LimitConfig{Algorithm: algorithm, Limit: l, Subject: subject}
}
