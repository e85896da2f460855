package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/policy"
)

func bucket(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

// Calls and streams of every kind are let through, and refused with all that a client needs to wait.
func TestUnaryAndStream(t *testing.T) {
	sum := func(ctx context.Context, c testpb.TestServiceClient, o ...grpc.CallOption) error {
		stream, err := c.StreamingInputCall(ctx, o...)
		if err != nil {
			return err
		}
		for range 3 { // a stream's messages cost nothing
			if err := stream.Send(&testpb.StreamingInputCallRequest{}); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	}
	duplex := func(ctx context.Context, c testpb.TestServiceClient, o ...grpc.CallOption) error {
		stream, err := c.FullDuplexCall(ctx, o...)
		if err != nil {
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallRequest{}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	for name, send := range map[string]func(context.Context, testpb.TestServiceClient, ...grpc.CallOption) error{
		"unary": call, "output": output, "input": sum, "duplex": duplex,
	} {
		t.Run(name, func(t *testing.T) {
			clock, svc := newClock(), &handlers{}
			l := sluice.New(newStore(clock), bucket(5, time.Minute, 2), "login")
			client := serve(t, svc, grpclimit.Unary(l, policy.IP()), grpclimit.Stream(l, policy.IP()))
			for range 2 {
				wantCode(t, send(from(t, "192.0.2.1:1"), client), codes.OK)
			}
			clock.Step(time.Nanosecond * 1500) // so that the wait is no whole number of ms

			var trailer metadata.MD
			err := send(from(t, "192.0.2.1:2"), client, grpc.Trailer(&trailer))
			wantCode(t, err, codes.ResourceExhausted)
			retry, quota := details(err)
			wait := retry.GetRetryDelay().AsDuration()
			if wait != 12*time.Second-time.Microsecond {
				t.Errorf("retry after %v, want 12s less 1µs", wait)
			}
			if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != "12000" {
				t.Errorf("pushback %v, want 12000, rounded up", got)
			}
			if len(quota.GetViolations()) != 1 {
				t.Fatalf("violations %v, want 1", quota)
			}
			if v := quota.Violations[0]; v.QuotaId != "login" || v.QuotaValue != 5 || v.Description == "" {
				t.Errorf("violation %v, want login and 5", v)
			}
			wantCode(t, send(from(t, "192.0.2.9:1"), client), codes.OK)
			if n := svc.calls.Load(); n != 3 {
				t.Errorf("%d calls reached the handler, want 3", n)
			}

			clock.Step(wait - time.Microsecond)
			wantCode(t, send(from(t, "192.0.2.1:3"), client), codes.ResourceExhausted)
			clock.Step(time.Microsecond)
			wantCode(t, send(from(t, "192.0.2.1:3"), client), codes.OK)
		})
	}
}

// A call without the subject is counted by its address, and so is every call where the subject is nil.
func TestUnaryFallsBackToAddress(t *testing.T) {
	for name, subject := range map[string]policy.Subject{
		"nil": nil, "absent": policy.Header("x-api-key"), "empty": func(*http.Request) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			l := sluice.New(newStore(newClock()), bucket(1, time.Hour, 1), "l")
			client := serve(t, &handlers{}, grpclimit.Unary(l, subject), grpclimit.Stream(l, subject))
			wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)
			wantCode(t, call(from(t, "192.0.2.1:2"), client), codes.ResourceExhausted)
			wantCode(t, call(from(t, "192.0.2.2:1"), client), codes.OK)
			wantCode(t, call(with(t), client), codes.OK) // no address at all
			wantCode(t, output(with(t), client), codes.ResourceExhausted)
		})
	}
}

// A subject sees what interceptors before have put into the context.
func TestSubjectSeesContext(t *testing.T) {
	type key struct{}
	l := sluice.New(newStore(newClock()), bucket(1, time.Hour, 1), "l")
	subject := func(r *http.Request) string { s, _ := r.Context().Value(key{}).(string); return s }
	limited := grpclimit.Unary(l, subject)
	client := serve(t, &handlers{}, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return limited(context.WithValue(ctx, key{}, metadata.ValueFromIncomingContext(ctx, "user")[0]), req, info, handler)
	}, grpclimit.Stream(l, subject))
	wantCode(t, call(with(t, "user", "ann"), client), codes.OK)
	wantCode(t, call(with(t, "user", "ann"), client), codes.ResourceExhausted)
	wantCode(t, call(with(t, "user", "bob"), client), codes.OK)
}

// Any number of callers on one subject get exactly the budget.
func TestUnaryConcurrent(t *testing.T) {
	const callers, each, budget = 16, 20, 100
	svc := &handlers{}
	l := sluice.New(newStore(newClock()), bucket(1, time.Hour, budget), "l")
	client := serve(t, svc, grpclimit.Unary(l, policy.Global()), grpclimit.Stream(l, policy.Global()))
	var passed atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range each {
				send := call
				if i%2 == 0 {
					send = output
				}
				err := send(with(t), client)
				if err == nil {
					passed.Add(1)
				} else {
					wantCode(t, err, codes.ResourceExhausted)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != budget || svc.calls.Load() != budget {
		t.Errorf("%d passed, %d handled, want %d", passed.Load(), svc.calls.Load(), budget)
	}
}

// A store that cannot decide is UNAVAILABLE, without its cause, and the handler does not run.
func TestUnaryStoreFails(t *testing.T) {
	svc := &handlers{}
	secret := errors.New("redis://:password@host")
	store := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return sluice.Decision{}, secret })
	l := sluice.New(store, bucket(1, time.Hour, 1), "l")
	client := serve(t, svc, grpclimit.Unary(l, nil), grpclimit.Stream(l, nil))
	for _, err := range []error{call(with(t), client), output(with(t), client)} {
		wantCode(t, err, codes.Unavailable)
		if errors.Is(err, secret) || err == nil || len(err.Error()) > 100 {
			t.Errorf("%v: want no cause", err)
		}
	}
	if svc.calls.Load() != 0 {
		t.Errorf("%d calls reached the handler, want none", svc.calls.Load())
	}
}

// held is a store whose decisions are allowed after a delay.
func held(delay time.Duration) sluice.Store {
	return sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{Allowed: true, Charged: 1, Delay: delay}, nil
	})
}

// The Delay of a leaky bucket is held before the handler runs, by limiters and rules alike; a client who does not wait
// is answered at once.
func TestDelayIsHeld(t *testing.T) {
	const delay = 40 * time.Millisecond
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "leaky_bucket", "1/s", "ip")}})
	for name, start := range map[string]func(*testing.T, time.Duration, *handlers) testpb.TestServiceClient{
		"limiter": func(t *testing.T, d time.Duration, svc *handlers) testpb.TestServiceClient {
			l := sluice.New(held(d), bucket(1, time.Hour, 1), "l")
			return serve(t, svc, grpclimit.Unary(l, nil), grpclimit.Stream(l, nil))
		},
		"rules": func(t *testing.T, d time.Duration, svc *handlers) testpb.TestServiceClient {
			return guarded(t, rules, held(d), svc)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, send := range []func(context.Context, testpb.TestServiceClient, ...grpc.CallOption) error{call, output} {
				var after time.Duration
				before := time.Now()
				client := start(t, delay, &handlers{began: func(_ context.Context, at time.Time) { after = at.Sub(before) }})
				wantCode(t, send(with(t), client), codes.OK)
				if after < delay {
					t.Errorf("the handler ran after %v, want at least %v", after, delay)
				}

				svc := &handlers{}
				client = start(t, time.Hour, svc)
				ctx, cancel := context.WithTimeout(with(t), delay)
				wantCode(t, send(ctx, client), codes.DeadlineExceeded)
				cancel()
				ctx, cancel = context.WithCancel(with(t))
				time.AfterFunc(delay, cancel)
				wantCode(t, send(ctx, client), codes.Canceled)
				if svc.calls.Load() != 0 {
					t.Errorf("%d calls reached the handler, want none", svc.calls.Load())
				}
			}
		})
	}
}
