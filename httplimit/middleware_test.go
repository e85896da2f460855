package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// Each limit of each rule that holds has its list members, the most specific rule's first.
func TestFieldsOfAllLimits(t *testing.T) {
	rules := newRules(t,
		policy.RuleConfig{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/min", "global")}},
		policy.RuleConfig{Name: "login", Match: "POST /login", Limits: []policy.LimitConfig{
			limit(t, "token_bucket", "5/min", "ip", 2), limit(t, "sliding_window", "1000/h", "global"),
		}},
	)
	h := wrap(rules, newStore(newClock()), &counter{})

	resp := get(h, "/other")
	wantStatus(t, resp, 200)
	wantField(t, resp, "RateLimit-Policy", `"all";q=100;w=60`)
	wantField(t, resp, "RateLimit", `"all";r=99;t=60`)

	const quotas = `"login/token_bucket-ip";q=5;w=60, "login/sliding_window-global";q=1000;w=3600, "all";q=100;w=60`
	resp = do(h, http.MethodPost, "/login")
	wantStatus(t, resp, 200)
	wantField(t, resp, "RateLimit-Policy", quotas)
	wantField(t, resp, "RateLimit", `"login/token_bucket-ip";r=1;t=12, "login/sliding_window-global";r=999;t=7200, "all";r=98;t=60`)

	wantStatus(t, do(h, http.MethodPost, "/login"), 200)
	resp = do(h, http.MethodPost, "/login")
	p := wantProblem(t, resp, 429, quotaExceeded)
	wantField(t, resp, "RateLimit-Policy", quotas)
	wantField(t, resp, "RateLimit", `"login/token_bucket-ip";r=0;t=12`) // the others were not decided
	wantField(t, resp, "Retry-After", "12")
	if fmt.Sprint(p.Violated) != "[login/token_bucket-ip]" {
		t.Errorf("violated-policies %v, want [login/token_bucket-ip]", p.Violated)
	}
	wantField(t, get(h, "/other"), "RateLimit", `"all";r=96;t=60`) // the refused request was charged nowhere
}

func TestStyles(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{
		limit(t, "fixed_window", "100/h", "global"), limit(t, "token_bucket", "5/min", "ip", 2),
	}})
	for _, c := range []struct {
		style             policy.Headers
		draft             string
		limit, left, wait [3]string // of each request; the third is refused
	}{
		{"", `"r/fixed_window-global";q=100;w=3600, "r/token_bucket-ip";q=5;w=60`, [3]string{}, [3]string{}, [3]string{}},
		{policy.HeadersX, "", [3]string{"2", "2", "2"}, [3]string{"1", "0", "0"}, [3]string{"12", "24", "12"}},
		{policy.HeadersOff, "", [3]string{}, [3]string{}, [3]string{}},
	} {
		t.Run("style "+string(c.style), func(t *testing.T) {
			h := httplimit.New(httplimit.Options{
				Rules: rules, Stores: everywhere(newStore(newClock())), Style: c.style,
			}).Wrap(&counter{})
			for i := range 3 {
				resp := get(h, "/")
				retryAfter := ""
				if i == 2 {
					retryAfter = "12"
				}
				wantField(t, resp, "Retry-After", retryAfter)
				wantField(t, resp, "RateLimit-Policy", c.draft)
				wantField(t, resp, "X-RateLimit-Limit", c.limit[i])
				wantField(t, resp, "X-RateLimit-Remaining", c.left[i])
				wantField(t, resp, "X-RateLimit-Reset", c.wait[i])
			}
		})
	}
}

// A rule's own denial replaces the problem; the fields stay.
func TestRuleDenial(t *testing.T) {
	always := policy.RuleConfig{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "3/min", "global")}}
	for name, c := range map[string]struct {
		denial           policy.Denial
		status           int
		contentType, txt string
	}{
		"body":          {policy.Denial{Status: 503, Type: "text/html", Body: "<p>later"}, 503, "text/html", "<p>later"},
		"body and type": {policy.Denial{Body: "later, please"}, 429, "text/plain; charset=utf-8", "later, please"},
		"status": {policy.Denial{Status: 403}, 403, "application/problem+json",
			`{"type":"` + quotaExceeded + `","title":"Request cannot be satisfied as assigned quota has been exceeded",` +
				`"status":403,"violated-policies":["r"]}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := newRules(t, always, policy.RuleConfig{Name: "r", Match: "/r", Denial: c.denial,
				Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}})
			h := wrap(rules, newStore(newClock()), &counter{})
			wantStatus(t, get(h, "/r"), 200)
			resp := get(h, "/r")
			wantStatus(t, resp, c.status)
			wantField(t, resp, "Content-Type", c.contentType)
			wantField(t, resp, "Retry-After", "60")
			wantField(t, resp, "Cache-Control", "no-store")
			if got := body(t, resp); got != c.txt {
				t.Errorf("body %q, want %q", got, c.txt)
			}
			get(h, "/x")
			get(h, "/x")
			wantProblem(t, get(h, "/x"), 429, quotaExceeded) // another rule's refusal is not answered with this one's text
		})
	}
}

// The strictest on_outage of the rules that hold picks the store.
func TestStoreByOnOutage(t *testing.T) {
	rule := func(name, match string, on policy.OnOutage) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: match, OnOutage: on, Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/s", "ip")}}
	}
	var used policy.OnOutage
	stores := map[policy.OnOutage]sluice.Store{}
	shared := newStore(newClock())
	for _, on := range []policy.OnOutage{policy.Local, policy.Allow, policy.Deny} {
		stores[on] = sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
			used = on
			return shared.Take(ctx, a)
		})
	}
	for _, c := range []struct{ specific, always, want policy.OnOutage }{
		{"", "", policy.Local},
		{policy.Allow, policy.Allow, policy.Allow},
		{policy.Allow, "", policy.Local},
		{policy.Allow, policy.Deny, policy.Deny},
		{policy.Deny, policy.Allow, policy.Deny},
	} {
		rules := newRules(t, rule("a", "/", c.specific), rule("b", "always", c.always))
		used = "none"
		wantStatus(t, get(httplimit.New(httplimit.Options{Rules: rules, Stores: stores}).Wrap(&counter{}), "/"), 200)
		if used != c.want {
			t.Errorf("%q and %q are decided by the store of %q, want %q", c.specific, c.always, used, c.want)
		}
	}

	var told error
	h := httplimit.New(httplimit.Options{
		Rules:   newRules(t, rule("a", "/", policy.Allow)),
		OnError: func(_ *http.Request, err error) { told = err },
	}).Wrap(&counter{})
	wantProblem(t, get(h, "/"), 503, "about:blank")
	if told == nil || told.Error() != "httplimit: rule a: no store for on_outage allow" {
		t.Errorf("OnError was told %v", told)
	}
}

func TestNothingMatches(t *testing.T) {
	broken := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { panic("asked") })
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/api/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/s", "ip")}})
	for name, m := range map[string]*httplimit.Middleware{
		"no rule matches": httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(broken)}),
		"no rules":        httplimit.New(httplimit.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			resp := get(m.Wrap(&counter{}), "/other")
			wantStatus(t, resp, 200)
			wantField(t, resp, "RateLimit", "")
		})
	}
}

// A cancelled request is nobody's fault: 503 into the void, OnError is not told, and next does not run.
func TestCancelled(t *testing.T) {
	store := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, ctx.Err()
	})
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/s", "ip")}})
	next := &counter{}
	h := httplimit.New(httplimit.Options{
		Rules: rules, Stores: everywhere(store),
		OnError: func(_ *http.Request, err error) { t.Errorf("OnError was told %v", err) },
	}).Wrap(next)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantStatus(t, get(h, "/", func(r *http.Request) { *r = *r.WithContext(ctx) }), 503)
	if next.calls.Load() != 0 {
		t.Error("next ran")
	}
}

func TestCheckHoldsLeaky(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "leaky_bucket", "10/s", "ip")}})
		h := wrap(rules, local.New(local.Options{}), &counter{})
		start := time.Now()
		for range 3 { // one after another: each leaves the queue before the next comes
			wantStatus(t, get(h, "/"), 200)
		}
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("three requests took %v, want 200ms", took)
		}
	})
}

// One rule for a pattern with a wildcard counts all its paths together; keys do not grow by path.
func TestCase_M3(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "users", Match: "GET /users/{id}", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}})
	store := newStore(newClock())
	h := wrap(rules, store, &counter{})
	wantStatus(t, get(h, "/users/1"), 200)
	wantStatus(t, get(h, "/users/2"), 429)
	if n := store.Len(); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}

	rules = newRules(t, policy.RuleConfig{Name: "users", Match: "GET /users/{id}", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "path:id")}})
	h = wrap(rules, newStore(newClock()), &counter{})
	wantStatus(t, get(h, "/users/1"), 200)
	wantStatus(t, get(h, "/users/2"), 200)
	wantStatus(t, get(h, "/users/1"), 429)
}

// A CORS preflight is not charged; a plain OPTIONS is, and HEAD is charged as GET.
func TestCase_M5(t *testing.T) {
	preflight := func(r *http.Request) {
		r.Method = http.MethodOptions
		r.Header.Set("Origin", "https://example.com")
		r.Header.Set("Access-Control-Request-Method", "GET")
	}
	store := newStore(newClock())
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "40/min", "ip")}})
	for name, h := range map[string]http.Handler{
		"Limit": httplimit.Limit(sluice.New(store, window(40, time.Minute), "l"), policy.IP())(&counter{}),
		"Wrap":  wrap(rules, store, &counter{}),
	} {
		t.Run(name, func(t *testing.T) {
			for range 39 {
				wantStatus(t, get(h, "/", preflight), 200)
				wantStatus(t, get(h, "/"), 200)
			}
			wantStatus(t, do(h, http.MethodOptions, "/"), 200)
			wantStatus(t, get(h, "/"), 429)
			wantStatus(t, get(h, "/", preflight), 200)
		})
	}

	rules = newRules(t, policy.RuleConfig{Name: "g", Match: "GET /g", Limits: []policy.LimitConfig{limit(t, "fixed_window", "2/min", "ip")}})
	h := wrap(rules, newStore(newClock()), &counter{})
	wantStatus(t, do(h, http.MethodHead, "/g"), 200)
	wantStatus(t, get(h, "/g"), 200)
	wantStatus(t, do(h, http.MethodHead, "/g"), 429)
}

// OnDeny runs before anything is written: its fields arrive, and its whole answer, if it writes one.
func TestCase_M7(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}})
	serve := func(onDeny func(http.ResponseWriter, *http.Request, sluice.Decision)) *http.Response {
		m := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(newStore(newClock())), OnDeny: onDeny})
		srv := httptest.NewServer(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if w.Header().Get("RateLimit") == "" {
				t.Error("the rate fields are not set when next runs")
			}
			if _, ok := w.(http.Flusher); !ok {
				t.Error("next got a ResponseWriter that is no Flusher")
			}
			if _, ok := w.(http.Hijacker); !ok {
				t.Error("next got a ResponseWriter that is no Hijacker")
			}
		})))
		t.Cleanup(srv.Close)
		var last *http.Response
		for range 2 {
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { resp.Body.Close() })
			last = resp
		}
		return last
	}

	t.Run("fields", func(t *testing.T) {
		resp := serve(func(w http.ResponseWriter, r *http.Request, d sluice.Decision) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Retry-After", "99")
		})
		wantProblem(t, resp, 429, quotaExceeded)
		wantField(t, resp, "Access-Control-Allow-Origin", "*")
		wantField(t, resp, "Retry-After", "99")
	})
	t.Run("answer", func(t *testing.T) {
		resp := serve(func(w http.ResponseWriter, r *http.Request, d sluice.Decision) {
			w.Header().Set("Content-Type", "text/x-own")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%v %d", d.Allowed, d.Limit)
		})
		wantStatus(t, resp, http.StatusTeapot)
		wantField(t, resp, "Content-Type", "text/x-own")
		wantField(t, resp, "Cache-Control", "no-store")
		if got := body(t, resp); got != "false 1" {
			t.Errorf("body %q, want %q", got, "false 1")
		}
	})
	t.Run("body alone", func(t *testing.T) {
		resp := serve(func(w http.ResponseWriter, r *http.Request, d sluice.Decision) { _, _ = io.WriteString(w, "own") })
		wantStatus(t, resp, 429)
		if got := body(t, resp); got != "own" {
			t.Errorf("body %q, want own", got)
		}
	})
}
