package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

func bucket(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func window(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(fixedwindow.New(sluice.Limit{Count: count, Period: period}))
}

func TestLimit(t *testing.T) {
	c, next := newClock(), &counter{}
	h := httplimit.Limit(sluice.New(newStore(c), bucket(5, time.Minute, 2), "login"), policy.IP())(next)

	for i, step := range []struct {
		wait              time.Duration
		status            int
		state, retryAfter string
	}{
		{0, 200, `"login";r=1;t=12`, ""},
		{0, 200, `"login";r=0;t=24`, ""},
		{0, 429, `"login";r=0;t=12`, "12"},
		{11 * time.Second, 429, `"login";r=0;t=1`, "1"},
		{time.Second, 200, `"login";r=0;t=24`, ""},
	} {
		c.Step(step.wait)
		resp := get(h, "/")
		if resp.StatusCode != step.status {
			t.Fatalf("step %d: status %d, want %d", i, resp.StatusCode, step.status)
		}
		wantField(t, resp, "RateLimit-Policy", `"login";q=5;w=60`)
		wantField(t, resp, "RateLimit", step.state)
		wantField(t, resp, "Retry-After", step.retryAfter)
		if step.status == 200 {
			wantField(t, resp, "Cache-Control", "")
			continue
		}
		p := wantProblem(t, resp, 429, quotaExceeded)
		if fmt.Sprint(p.Violated) != "[login]" {
			t.Errorf("violated-policies %v, want [login]", p.Violated)
		}
	}
	if n := next.calls.Load(); n != 3 {
		t.Errorf("next ran %d times, want 3", n)
	}
}

// Limits in a chain: each adds its members to the lists, and the second to refuse leaves the first charged.
func TestLimitChain(t *testing.T) {
	store, next := newStore(newClock()), &counter{}
	outer := httplimit.Limit(sluice.New(store, window(10, time.Minute), "outer"), policy.IP())
	inner := httplimit.Limit(sluice.New(store, window(1, time.Minute), "inner"), nil)
	h := outer(inner(next))
	wantStatus(t, get(h, "/"), 200)
	resp := get(h, "/")
	wantProblem(t, resp, 429, quotaExceeded)
	wantField(t, resp, "RateLimit-Policy", `"outer";q=10;w=60, "inner";q=1;w=60`)
	wantField(t, resp, "RateLimit", `"outer";r=8;t=60, "inner";r=0;t=60`)
}

// A cost that can never pass has no finite Retry-After.
func TestDenyNever(t *testing.T) {
	l := sluice.New(newStore(newClock()), bucket(3, 2*time.Second, 3), "batch")
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := l.AllowN(r.Context(), "x", 4)
		if err != nil || d.Allowed {
			t.Fatalf("allowed %v, error %v; want a denial", d.Allowed, err)
		}
		httplimit.Deny(w, d)
	})
	resp := get(h, "/")
	wantProblem(t, resp, 429, quotaExceeded)
	wantField(t, resp, "Retry-After", "")
	wantField(t, resp, "RateLimit-Policy", `"default";q=3`)
	wantField(t, resp, "RateLimit", `"default";r=3;t=0`)
}

// Deny leaves fields that are set already as they are.
func TestDenyKeepsFields(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("RateLimit", `"mine";r=0;t=9`)
	httplimit.Deny(w, sluice.Decision{RetryAfter: 9 * time.Second})
	wantField(t, w.Result(), "RateLimit", `"mine";r=0;t=9`)
	wantField(t, w.Result(), "RateLimit-Policy", "")
	wantField(t, w.Result(), "Retry-After", "9")
	if p := wantProblem(t, w.Result(), 429, quotaExceeded); p.Violated != nil {
		t.Errorf("violated-policies %v, want none", p.Violated)
	}
}

// Retry-After is in whole seconds, rounded up and never 0, and whoever obeys it passes.
func TestCase_D1(t *testing.T) {
	h := httplimit.Limit(sluice.New(newStore(newClock()), bucket(10, time.Second, 1), "r"), policy.IP())(&counter{})
	wantStatus(t, get(h, "/"), 200)
	wantField(t, get(h, "/"), "Retry-After", "1")

	for _, rate := range []int64{1, 2, 3, 7, 10, 59, 1000} {
		c := newClock()
		h := httplimit.Limit(sluice.New(newStore(c), bucket(rate, time.Minute, 1), "r"), policy.IP())(&counter{})
		for i := range 50 {
			wantStatus(t, get(h, "/"), 200)
			c.Step(time.Duration(i) * 37 * time.Millisecond % (time.Minute / time.Duration(rate)))
			resp := get(h, "/")
			wantStatus(t, resp, 429)
			s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if err != nil || s < 1 {
				t.Fatalf("rate %d/min: Retry-After %q, want at least 1", rate, resp.Header.Get("Retry-After"))
			}
			c.Step(time.Duration(s) * time.Second)
		}
	}
}

// The port of a connection is no part of the client.
func TestCase_L3(t *testing.T) {
	h := httplimit.Limit(sluice.New(newStore(newClock()), window(2, time.Minute), "r"), policy.IP())(&counter{})
	denied := 0
	for port := 1000; port < 1010; port++ {
		if get(h, "/", from(fmt.Sprintf("192.0.2.1:%d", port))).StatusCode == 429 {
			denied++
		}
	}
	if denied != 8 {
		t.Errorf("%d of 10 denied, want 8", denied)
	}
	for _, addr := range []string{"[2001:db8::1]:1", "192.0.2.9", "@", ""} {
		wantStatus(t, get(h, "/", from(addr)), 200) // no panic
	}
}

// Without the header, IPs are counted apart: they share no constant key.
func TestCase_L7(t *testing.T) {
	var raw []string
	store := newStore(newClock())
	spy := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		raw = append(raw, a.Key.Subject)
		return store.Take(ctx, a)
	})
	h := httplimit.Limit(sluice.New(spy, window(1, time.Minute), "r"), policy.Header("X-API-Key"))(&counter{})
	for _, edit := range []func(*http.Request){func(*http.Request) {}, with("X-API-Key", ""), with("X-API-Key", "  ")} {
		for _, ip := range []string{"192.0.2.1:1", "192.0.2.2:1"} {
			get(h, "/", from(ip), edit)
		}
	}
	if a, b := raw[0], raw[1]; a == b {
		t.Errorf("both IPs are counted as %q", a)
	}
	for i, s := range raw {
		if s != raw[i%2] {
			t.Errorf("request %d is counted as %q, want %q", i, s, raw[i%2])
		}
	}
	raw = nil
	wantStatus(t, get(h, "/", with("X-API-Key", "secret-key")), 200)
	if strings.Contains(raw[0], "secret-key") {
		t.Errorf("the key holds the secret: %q", raw[0])
	}
}

// Retry-After is in seconds, in ASCII digits alone.
func TestCase_M9(t *testing.T) {
	c := newClock()
	h := httplimit.Limit(sluice.New(newStore(c), window(5, time.Minute), "r"), policy.IP())(&counter{})
	for range 5 {
		wantStatus(t, get(h, "/"), 200)
	}
	c.Step(2 * time.Second)
	wantField(t, get(h, "/"), "Retry-After", "58")
}

// A store that fails without a fallback: 503 once, and next does not run.
func TestCase_M11(t *testing.T) {
	broken := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, fmt.Errorf("%w: secret address", sluice.ErrUnavailable)
	})
	var told error
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/s", "ip")}})
	next := &counter{}
	for name, h := range map[string]http.Handler{
		"Limit": httplimit.Limit(sluice.New(broken, window(1, time.Second), "r"), policy.IP())(next),
		"Wrap": httplimit.New(httplimit.Options{
			Rules: rules, Stores: everywhere(broken), OnError: func(_ *http.Request, err error) { told = err },
		}).Wrap(next),
	} {
		t.Run(name, func(t *testing.T) {
			resp := get(h, "/")
			wantProblem(t, resp, 503, "about:blank")
			wantField(t, resp, "Retry-After", "")
			wantField(t, resp, "RateLimit", "")
		})
	}
	if next.calls.Load() != 0 {
		t.Error("next ran")
	}
	if !errors.Is(told, sluice.ErrUnavailable) {
		t.Errorf("OnError was told %v, want ErrUnavailable", told)
	}

	allow := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{Allowed: true, Source: sluice.Assumed}, nil
	})
	wantStatus(t, get(wrap(rules, allow, next), "/"), 200)
	if n := next.calls.Load(); n != 1 {
		t.Errorf("fail-open: next ran %d times, want once", n)
	}
}

// A leaky bucket holds each request for its Delay, and the fields are those of the decision.
func TestLeakyHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := sluice.Must(leaky.New(sluice.Limit{Count: 10, Period: time.Second, Burst: 5}))
		next := &counter{}
		h := httplimit.Limit(sluice.New(local.New(local.Options{}), queue, "r"), policy.IP())(next)
		start := time.Now()
		var acted [5]time.Duration
		var wg sync.WaitGroup
		for i := range acted {
			wg.Go(func() {
				time.Sleep(time.Duration(i)) // arrive in order
				wantStatus(t, get(h, "/"), 200)
				acted[i] = time.Since(start).Truncate(time.Millisecond)
			})
		}
		time.Sleep(time.Microsecond)
		wantProblem(t, get(h, "/"), 429, quotaExceeded)
		wg.Wait()
		for i, at := range acted {
			if want := time.Duration(i) * 100 * time.Millisecond; at != want {
				t.Errorf("request %d acted at %v, want %v", i, at, want)
			}
		}
	})
}

// A client who leaves while held never reaches next, and gets 503 in case someone looks.
func TestLeakyClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := sluice.Must(leaky.New(sluice.Limit{Count: 1, Period: time.Minute, Burst: 2}))
		next := &counter{}
		h := httplimit.Limit(sluice.New(local.New(local.Options{}), queue, "r"), policy.IP())(next)
		wantStatus(t, get(h, "/"), 200)

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		resp := get(h, "/", func(r *http.Request) { *r = *r.WithContext(ctx) })
		wantProblem(t, resp, 503, "about:blank")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("returned after %v, want 3s", took)
		}
		if n := next.calls.Load(); n != 1 {
			t.Errorf("next ran %d times, want once", n)
		}
	})
}
