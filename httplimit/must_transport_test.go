package httplimit_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/store/local"
)

// roundTrip is a RoundTripper in one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is what an API answers, with fields given as name, value, name, value.
func answer(status int, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody}
}

func outgoing(count int64, period time.Duration, burst int64) *sluice.Limiter {
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
	return sluice.New(local.New(local.Options{}), st, "out")
}

// call sends one request with a body, which must be closed if the call fails and never reaches base.
func call(ctx context.Context, t *testing.T, out http.RoundTripper) error {
	t.Helper()
	body := &closed{Reader: strings.NewReader("x")}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/", body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := out.RoundTrip(r)
	if err != nil {
		if !body.was {
			t.Error("a call that failed leaves its body open")
		}
		return err
	}
	return res.Body.Close()
}

// Calls that wait for the limiter when the API asks for a pause wait for its end too, and are then paced as ever: none
// has gathered a unit meanwhile.
func TestMustTransportPausesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var came []time.Duration
		start := time.Now()
		out := httplimit.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			came = append(came, time.Since(start))
			first := len(came) == 1
			mu.Unlock()
			if first {
				time.Sleep(500 * time.Millisecond)
				return answer(429, "Retry-After", "10"), nil
			}
			return answer(200), nil
		}), outgoing(1, time.Second, 1), "api")

		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				if err := call(t.Context(), t, out); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		end := 10*time.Second + 500*time.Millisecond
		if want := []time.Duration{0, end, end + time.Second, end + 2*time.Second}; !slices.Equal(came, want) {
			t.Errorf("calls came at %v: want %v", came, want)
		}
	})
}

// A pause that outlasts a waiting call's deadline ends the call when it begins, and nothing is charged; so does one that
// becomes longer.
func TestMustTransportPauseEndsTheHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := outgoing(1, time.Minute, 3)
		start := time.Now()
		answers := map[string]*http.Response{"a": answer(503, "Retry-After", "5"), "b": answer(429, "Retry-After", "30")}
		out := httplimit.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			switch r.URL.Host {
			case "a":
				time.Sleep(time.Second)
			case "b":
				time.Sleep(2 * time.Second)
			}
			return answers[r.URL.Host], nil
		}), limiter, "api")
		client := http.Client{Transport: out}

		var calls sync.WaitGroup
		for _, host := range []string{"a", "b"} { // a's answer at 1s asks for a pause until 6s, b's at 2s until 32s
			calls.Go(func() {
				res, err := client.Get("http://" + host)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
			})
		}
		time.Sleep(1500 * time.Millisecond)
		for _, patience := range []time.Duration{4 * time.Second, 20 * time.Second} { // until 5.5s and 21.5s
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := call(ctx, t, out)
				want := 1500 * time.Millisecond // when the pause until 6s is known
				if patience > 4500*time.Millisecond {
					want = 2 * time.Second // when that until 32s is
				}
				if came := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || came != want {
					t.Errorf("patience %v: %v after %v: want DeadlineExceeded after %v", patience, err, came, want)
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
func TestMustTransportObeysTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		out := httplimit.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			switch r.URL.Host {
			case "long":
				time.Sleep(500 * time.Millisecond)
				return answer(429, "Retry-After", "30"), nil
			case "short":
				time.Sleep(time.Second)
				return answer(429, "Retry-After", "5"), nil
			}
			return answer(200), nil
		}), outgoing(10, time.Second, 10), "api")
		client := http.Client{Transport: out}
		var calls sync.WaitGroup
		for _, host := range []string{"long", "short"} {
			calls.Go(func() {
				res, err := client.Get("http://" + host)
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
			})
		}
		calls.Wait()
		if err := call(t.Context(), t, out); err != nil || time.Since(start) != 30500*time.Millisecond {
			t.Errorf("the next call ends after %v, %v: want 30.5s", time.Since(start), err)
		}
	})
}

// A call that is cancelled while it waits, for the limiter or for the API, ends at once and is not charged.
func TestMustTransportCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		answer *http.Response
		left   int64 // before the cancelled call
	}{
		"for the limiter": {answer(200), 0},
		"for the API":     {answer(429, "Retry-After", "60"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := outgoing(1, time.Hour, 1)
				sent := 0
				out := httplimit.Transport(roundTrip(func(*http.Request) (*http.Response, error) { sent++; return c.answer, nil }), limiter, "api")
				if err := call(t.Context(), t, out); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				before := time.Now()
				if err := call(ctx, t, out); !errors.Is(err, context.Canceled) || time.Since(before) != time.Second {
					t.Errorf("%v after %v: want Canceled after 1s", err, time.Since(before))
				}
				cancel()
				if err := call(ctx, t, out); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled before: %v", err)
				}
				time.Sleep(time.Hour - time.Second)
				if d, err := limiter.Peek(t.Context(), "api", 0); err != nil || d.Remaining != 1 || sent != 1 {
					t.Errorf("%d left, %v, %d sent: want the one unit back in the hour that one call costs", d.Remaining, err, sent)
				}
			})
		})
	}
}

// However many call at once, and whatever the API answers: no more go out than the limit lets, and none while the API
// wants none, but for those under way.
func TestMustTransportConcurrent(t *testing.T) {
	const callers, each, count, burst = 50, 8, 20, 5
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		var came []time.Time
		var told, until time.Time // of the last answer that asked for a pause
		out := httplimit.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
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
				return answer(200), nil
			}
			mu.Lock()
			defer mu.Unlock()
			if end := time.Now().Add(2 * time.Second); end.After(until) {
				told, until = time.Now(), end
			}
			return answer(429, "Retry-After", "2"), nil
		}), outgoing(count, time.Second, burst), "api")

		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() {
				for range each {
					if err := call(t.Context(), t, out); err != nil {
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
				most := burst + int(came[j].Sub(came[i])*count/time.Second)
				if n := j - i + 1; n > most {
					t.Fatalf("%d calls within %v: want at most %d", n, came[j].Sub(came[i]), most)
				}
			}
		}
	})
}

// A date is counted from the date of the answer: what the two clocks show does not matter.
func TestMustTransportDates(t *testing.T) {
	const fiveLater = "Sat, 01 Jan 2000 12:00:05 GMT"
	for name, c := range map[string]struct {
		fields []string
		want   time.Duration // from the answer to the next call, on a clock that starts with the year 2000
	}{
		"an API ahead by 12h":    {[]string{"Retry-After", fiveLater, "Date", "Sat, 01 Jan 2000 12:00:00 GMT"}, 5 * time.Second},
		"an API behind by years": {[]string{"Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, 3 * time.Second},
		"RFC 850":                {[]string{"Retry-After", "Sunday, 06-Nov-94 08:49:40 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, 3 * time.Second},
		"asctime":                {[]string{"Retry-After", "Sun Nov  6 08:49:40 1994", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, 3 * time.Second},
		"in the past":            {[]string{"Retry-After", "Sun, 06 Nov 1994 08:49:30 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, 0},
		"without a date":         {[]string{"Retry-After", "Sat, 01 Jan 2000 00:00:07 GMT"}, 7 * time.Second},
		"with no date":           {[]string{"Retry-After", "Sat, 01 Jan 2000 00:00:07 GMT", "Date", "today"}, 7 * time.Second},
		"far away":               {[]string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, time.Hour},
		"seconds and a date":     {[]string{"Retry-After", " 4 ", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, 4 * time.Second},
		"none":                   {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := httplimit.Transport(roundTrip(func(*http.Request) (*http.Response, error) { return answer(503, c.fields...), nil }),
					outgoing(10, time.Second, 10), "api")
				if err := call(t.Context(), t, out); err != nil {
					t.Fatal(err)
				}
				before := time.Now()
				if err := call(t.Context(), t, out); err != nil || time.Since(before) != c.want {
					t.Errorf("the next call went out after %v, %v: want %v", time.Since(before), err, c.want)
				}
			})
		})
	}
}

// What base answers, and how it fails, arrives as it is: a denial's body is there to be read.
func TestMustTransportHandsOn(t *testing.T) {
	body := &closed{Reader: strings.NewReader("wait")}
	broken := errors.New("no route")
	fail := false
	out := httplimit.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != "x" {
			t.Errorf("base reads %q, %v: want x", b, err)
		}
		if fail {
			return nil, broken
		}
		res := answer(429)
		res.Body = body
		return res, nil
	}), outgoing(10, time.Second, 10), "api")
	send := func() (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		return out.RoundTrip(r)
	}
	res, err := send()
	if err != nil || body.was {
		t.Fatalf("%v, body closed %v", err, body.was)
	}
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != "wait" {
		t.Errorf("body %q, %v: want wait", b, err)
	}
	if err := res.Body.Close(); err != nil || !body.was {
		t.Errorf("%v, closed %v", err, body.was)
	}
	fail = true
	if _, err := send(); err != broken {
		t.Errorf("%v: want base's error", err)
	}
}

// A store that can't decide fails the call, which base never sees: also one that says, of itself, that it was cancelled.
func TestMustTransportStoreFails(t *testing.T) {
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Second, Burst: 1}))
	for _, why := range []error{sluice.ErrUnavailable, sluice.ErrState, context.Canceled} {
		away := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return sluice.Decision{}, why })
		out := httplimit.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
			t.Error("base is called")
			return answer(200), nil
		}), sluice.New(away, st, "out"), "api")
		if err := call(t.Context(), t, out); !errors.Is(err, why) {
			t.Errorf("%v: want %v", err, why)
		}
	}
}

// idle is a base that keeps connections.
type idle struct {
	roundTrip
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

func TestMustTransportClosesIdleConnections(t *testing.T) {
	base := &idle{}
	client := http.Client{Transport: httplimit.Transport(base, outgoing(1, time.Second, 1), "api")}
	client.CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("base was told %d times to close idle connections, want once", base.closed)
	}
	client.Transport = httplimit.Transport(base.roundTrip, outgoing(1, time.Second, 1), "api")
	client.CloseIdleConnections() // a base that keeps none
}
