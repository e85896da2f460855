package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// outgoing is a limiter on the bubble's clock.
func outgoing(count int64, period time.Duration, burst int64) *sluice.Limiter {
	return sluice.New(local.New(local.Options{}), bucket(count, period, burst), "out")
}

func asking(code codes.Code, wait time.Duration) error {
	st, err := status.New(code, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	if err != nil {
		return err
	}
	return st.Err()
}

// server answers calls in turn, and says when each came.
type server struct {
	start   time.Time
	came    []time.Duration
	answers []error
}

func (s *server) answer() (err error) {
	s.came = append(s.came, time.Since(s.start))
	if len(s.answers) > 0 {
		err, s.answers = s.answers[0], s.answers[1:]
	}
	return err
}

// ended is a client's stream that has ended with err.
type ended struct {
	grpc.ClientStream
	err error
}

func (e ended) RecvMsg(any) error {
	if e.err == nil {
		return io.EOF
	}
	return e.err
}

// sends are the ways to send a call to a server: unary, and a stream that is refused later or at once.
func sends(c *grpclimit.Client, s *server) map[string]func(context.Context) error {
	opened := func(ctx context.Context, streamer grpc.Streamer) error {
		cs, err := c.StreamClientInterceptor()(ctx, &grpc.StreamDesc{}, nil, outputMethod, streamer)
		if err != nil {
			return err
		}
		if err := cs.RecvMsg(nil); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	return map[string]func(context.Context) error{
		"unary": func(ctx context.Context) error {
			return c.UnaryClientInterceptor()(ctx, unaryMethod, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return s.answer()
			})
		},
		"stream": func(ctx context.Context) error {
			return opened(ctx, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return ended{err: s.answer()}, nil
			})
		},
		"stream, at once": func(ctx context.Context) error {
			return opened(ctx, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				if err := s.answer(); err != nil {
					return nil, err
				}
				return ended{}, nil
			})
		},
	}
}

func TestClient(t *testing.T) {
	var (
		exhausted   = codes.ResourceExhausted
		unavailable = codes.Unavailable
		free        = []time.Duration{0, 0, time.Second, 2 * time.Second}
	)
	for name, tt := range map[string]struct {
		answers []error
		want    []time.Duration // when calls arrive
	}{
		"the limit":        {nil, free},
		"refused":          {[]error{asking(exhausted, 5*time.Second)}, []time.Duration{0, 5 * time.Second, 5 * time.Second, 6 * time.Second}},
		"unavailable":      {[]error{asking(unavailable, 7*time.Second)}, []time.Duration{0, 7 * time.Second, 7 * time.Second, 8 * time.Second}},
		"the longer holds": {[]error{asking(exhausted, 5*time.Second), asking(exhausted, time.Second)}, []time.Duration{0, 5 * time.Second, 6 * time.Second, 6 * time.Second}},
		"without end":      {[]error{asking(exhausted, 1<<62)}, []time.Duration{0, time.Hour, time.Hour, time.Hour + time.Second}},
		"negative":         {[]error{asking(exhausted, -time.Hour)}, free},
		"without details":  {[]error{status.Error(exhausted, "later")}, free},
		"an empty detail":  {[]error{sluice.Must(status.New(exhausted, "").WithDetails(&errdetails.RetryInfo{})).Err()}, free},
		"another status":   {[]error{asking(codes.Aborted, 5*time.Second)}, free},
		"no status":        {[]error{errors.New("broken")}, free},
	} {
		for way := range sends(nil, nil) {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					far := &server{start: time.Now(), answers: slices.Clone(tt.answers)}
					send := sends(grpclimit.NewClient(outgoing(1, time.Second, 2), "api"), far)[way]
					for i := range tt.want {
						want := error(nil)
						if i < len(tt.answers) {
							want = tt.answers[i]
						}
						if err := send(t.Context()); err != want {
							t.Errorf("call %d: %v, want the server's answer, %v", i, err, want)
						}
					}
					if !slices.Equal(far.came, tt.want) {
						t.Errorf("calls came at %v, want %v", far.came, tt.want)
					}
				})
			})
		}
	}
}

// A call that can't wait long enough fails at once and costs nothing; its error is a status and wraps the cause.
func TestClientDeadline(t *testing.T) {
	for way := range sends(nil, nil) {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := outgoing(1, time.Hour, 2)
				far := &server{start: time.Now(), answers: []error{asking(codes.ResourceExhausted, time.Minute)}}
				send := sends(grpclimit.NewClient(limiter, "api"), far)[way]
				wantCode(t, send(t.Context()), codes.ResourceExhausted)
				before := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
				defer cancel()
				err := send(ctx)
				if wantCode(t, err, codes.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != 0 {
					t.Errorf("%v after %v, want DeadlineExceeded at once", err, time.Since(before))
				}
				gone, leave := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, leave)
				err = send(gone)
				if wantCode(t, err, codes.Canceled); !errors.Is(err, context.Canceled) || time.Since(before) != time.Second {
					t.Errorf("%v after %v, want Canceled after 1s", err, time.Since(before))
				}
				if err := send(t.Context()); err != nil { // the second unit, once the pause is over
					t.Error(err)
				}
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				wantCode(t, send(ctx), codes.DeadlineExceeded)
				if len(far.came) != 2 {
					t.Errorf("%d calls came, want 2", len(far.came))
				}
			})
		})
	}
}

// staged is a server that takes its time over each call, and answers as its method says.
func staged(answers map[string]error, takes map[string]time.Duration) grpc.UnaryInvoker {
	return func(_ context.Context, method string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		time.Sleep(takes[method])
		return answers[method]
	}
}

// A pause that outlasts a waiting call's deadline ends the call when it begins, and nothing is charged; so does one that
// becomes longer.
func TestClientPauseEndsTheHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := outgoing(1, time.Minute, 3)
		limits := grpclimit.NewClient(limiter, "api").UnaryClientInterceptor()
		far := staged( // a's answer at 1s asks for a pause until 6s, b's at 2s until 32s
			map[string]error{"a": asking(codes.Unavailable, 5*time.Second), "b": asking(codes.ResourceExhausted, 30*time.Second)},
			map[string]time.Duration{"a": time.Second, "b": 2 * time.Second})
		start := time.Now()
		var calls sync.WaitGroup
		for _, method := range []string{"a", "b"} {
			calls.Go(func() { _ = limits(t.Context(), method, nil, nil, nil, far) })
		}
		time.Sleep(1500 * time.Millisecond)
		for patience, want := range map[time.Duration]time.Duration{ // until 5.5s and 21.5s
			4 * time.Second:  1500 * time.Millisecond, // when the pause until 6s is known
			20 * time.Second: 2 * time.Second,         // when that until 32s is
		} {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := limits(ctx, "", nil, nil, nil, far)
				wantCode(t, err, codes.DeadlineExceeded)
				if came := time.Since(start); came != want {
					t.Errorf("patience %v: told after %v, want %v", patience, came, want)
				}
			})
		}
		calls.Wait()
		if d, err := limiter.Peek(t.Context(), "api", 0); err != nil || d.Remaining != 1 {
			t.Errorf("%d left, %v: want 1, the calls that failed are not charged", d.Remaining, err)
		}
	})
}

// A shorter pause that is asked for during a longer one does not shorten it.
func TestClientObeysTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := grpclimit.NewClient(outgoing(10, time.Second, 10), "api").UnaryClientInterceptor()
		far := staged(
			map[string]error{"long": asking(codes.ResourceExhausted, 30*time.Second), "short": asking(codes.ResourceExhausted, 5*time.Second)},
			map[string]time.Duration{"long": 500 * time.Millisecond, "short": time.Second})
		start := time.Now()
		var calls sync.WaitGroup
		for _, method := range []string{"long", "short"} {
			calls.Go(func() { _ = limits(t.Context(), method, nil, nil, nil, far) })
		}
		calls.Wait()
		if err := limits(t.Context(), "", nil, nil, nil, far); err != nil || time.Since(start) != 30500*time.Millisecond {
			t.Errorf("the next call ends after %v, %v: want 30.5s", time.Since(start), err)
		}
	})
}

// A store that can't decide fails the call, which is not sent.
func TestClientStoreFails(t *testing.T) {
	timeout := errors.Join(sluice.ErrUnavailable, context.DeadlineExceeded) // of the store's own
	for _, tt := range []struct {
		why  error
		code codes.Code
	}{{sluice.ErrUnavailable, codes.Unavailable}, {timeout, codes.Unavailable}, {sluice.ErrState, codes.Unavailable}, {context.Canceled, codes.Canceled}} {
		away := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return sluice.Decision{}, tt.why })
		far := &server{}
		for way, send := range sends(grpclimit.NewClient(sluice.New(away, bucket(1, time.Second, 1), "out"), "api"), far) {
			err := send(t.Context())
			if wantCode(t, err, tt.code); !errors.Is(err, tt.why) || len(far.came) != 0 {
				t.Errorf("%s: %v, %d sent, want %v and none", way, err, len(far.came), tt.why)
			}
		}
	}
}

// However many call at once, and whatever the server answers: no more go out than the limit lets, and none while the
// server wants none, but for those under way.
func TestClientConcurrent(t *testing.T) {
	const callers, each, count, burst = 50, 8, 20, 5
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		var came []time.Time
		var told, until time.Time // of the last answer that asked for a pause
		limits := grpclimit.NewClient(outgoing(count, time.Second, burst), "api").UnaryClientInterceptor()
		far := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			mu.Lock()
			now := time.Now()
			if now.After(told) && now.Before(until) {
				t.Errorf("a call goes out %v before the end of a pause that was asked for %v ago", until.Sub(now), now.Sub(told))
			}
			came = append(came, now)
			takes, refuses := time.Duration(random.IntN(300))*time.Millisecond, random.IntN(20) == 0
			mu.Unlock()
			time.Sleep(takes)
			if !refuses {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if end := time.Now().Add(2 * time.Second); end.After(until) {
				told, until = time.Now(), end
			}
			return asking(codes.ResourceExhausted, 2*time.Second)
		}
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() {
				for range each {
					if err := limits(t.Context(), unaryMethod, nil, nil, nil, far); err != nil && status.Code(err) != codes.ResourceExhausted {
						t.Error(err)
					}
				}
			})
		}
		calls.Wait()
		if len(came) != callers*each {
			t.Errorf("%d calls came, want %d", len(came), callers*each)
		}
		for i := range came {
			for j := i; j < len(came); j++ {
				if n, most := j-i+1, burst+int(came[j].Sub(came[i])*count/time.Second); n > most {
					t.Fatalf("%d calls within %v, want at most %d", n, came[j].Sub(came[i]), most)
				}
			}
		}
	})
}

// A client and a server of this package, over a wire: the client stays away for as long as the server says, for unary
// calls and streams together.
func TestClientObeysServer(t *testing.T) {
	clock := newClock()
	l := sluice.New(newStore(clock), bucket(5, time.Minute, 2), "in")
	out := grpclimit.NewClient(outgoing(1_000_000, time.Second, 1_000_000), "api")
	client := serve(t, &handlers{}, grpclimit.Unary(l, policy.Global()), grpclimit.Stream(l, policy.Global()),
		grpc.WithChainUnaryInterceptor(out.UnaryClientInterceptor()), grpc.WithChainStreamInterceptor(out.StreamClientInterceptor()))
	wantCode(t, call(with(t), client), codes.OK)
	wantCode(t, output(with(t), client), codes.OK)
	wantCode(t, output(with(t), client), codes.ResourceExhausted) // RetryInfo: 12s
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	before := time.Now()
	for _, send := range []func(context.Context, testpb.TestServiceClient, ...grpc.CallOption) error{call, output} {
		err := send(ctx, client)
		wantCode(t, err, codes.DeadlineExceeded)
	}
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("told after %v, want at once", took)
	}
}

// gRPC's own retries, which any language has, obey the pushback: the call is sent again when there is room, and not at
// all where no wait helps.
func TestRetriesOfGRPCObey(t *testing.T) {
	const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "3600s", "maxBackoff": "3600s",
		"backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`
	st := bucket(1, 50*time.Millisecond, 1)
	var asked int
	for name, tt := range map[string]struct {
		wait  time.Duration
		code  codes.Code
		asked int
	}{
		"a while": {20 * time.Millisecond, codes.OK, 2},
		"never":   {sluice.Never, codes.ResourceExhausted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			l := sluice.New(sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
				if asked++; asked == 1 {
					return sluice.Decision{RetryAfter: tt.wait}, nil
				}
				return sluice.Decision{Allowed: true}, nil
			}), st, "l")
			client := serve(t, &handlers{}, grpclimit.Unary(l, nil), grpclimit.Stream(l, nil), grpc.WithDefaultServiceConfig(retries))
			wantCode(t, call(metadata.NewOutgoingContext(with(t), nil), client), tt.code)
			if asked != tt.asked {
				t.Errorf("asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}
