package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

func prefix(s string) (netip.Prefix, error) { return netip.ParsePrefix(s) }

// A denied request is refused before anything is charged, whichever of the rules denies it.
func TestDeniedByList(t *testing.T) {
	rule := func(name, match string, d policy.Denial) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: match, Denial: d, Deny: []string{"192.0.2.0/24", "header:X-Key=bad"}, Exempt: []string{"192.0.2.1"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}}
	}
	open := policy.RuleConfig{Name: "open", Match: "/open", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/min", "global")}}
	for name, c := range map[string]struct {
		rules       []policy.RuleConfig
		path        string
		status      int
		contentType string
		body        string
	}{
		"default":    {[]policy.RuleConfig{rule("r", "/", policy.Denial{})}, "/", 403, "application/problem+json", `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"},
		"own status": {[]policy.RuleConfig{rule("r", "/", policy.Denial{Status: 418})}, "/", 418, "application/problem+json", `{"type":"about:blank","title":"I'm a teapot","status":418}` + "\n"},
		"odd status": {[]policy.RuleConfig{rule("r", "/", policy.Denial{Status: 599})}, "/", 599, "application/problem+json", `{"type":"about:blank","title":"Refused","status":599}` + "\n"},
		"own body":   {[]policy.RuleConfig{rule("r", "/", policy.Denial{Body: "go away"})}, "/", 403, "text/plain; charset=utf-8", "go away"},
		"by always":  {[]policy.RuleConfig{open, rule("r", "always", policy.Denial{})}, "/open", 403, "application/problem+json", `{"type":"about:blank","title":"Forbidden","status":403}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			store, next := newStore(newClock()), &counter{}
			h := wrap(newRules(t, c.rules...), store, next)
			for _, edit := range []func(*http.Request){from("192.0.2.1:1"), with("X-Key", "bad"), preflightFrom("192.0.2.9:1")} {
				resp := get(h, c.path, edit)
				wantStatus(t, resp, c.status)
				wantField(t, resp, "Content-Type", c.contentType)
				wantField(t, resp, "Retry-After", "")
				wantField(t, resp, "RateLimit", "")
				wantField(t, resp, "Cache-Control", "no-store")
				if got := body(t, resp); got != c.body {
					t.Errorf("body %q, want %q", got, c.body)
				}
			}
			if next.calls.Load() != 0 || store.Len() != 0 {
				t.Errorf("next ran %d times, %d keys: want none", next.calls.Load(), store.Len())
			}
			wantStatus(t, get(h, c.path, from("198.51.100.1:1")), 200)
		})
	}
}

func preflightFrom(addr string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method, r.RemoteAddr = http.MethodOptions, addr
		r.Header.Set("Origin", "https://example.com")
		r.Header.Set("Access-Control-Request-Method", "GET")
	}
}

// An exempt request is not counted by that rule, and by the others it is.
func TestExempt(t *testing.T) {
	rules := newRules(t,
		policy.RuleConfig{Name: "r", Match: "/", Exempt: []string{"192.0.2.1", "query:key=free"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}},
		policy.RuleConfig{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "4/min", "global")}},
	)
	h := wrap(rules, newStore(newClock()), &counter{})
	for i := range 2 {
		resp := get(h, "/", from("192.0.2.1:1"))
		wantStatus(t, resp, 200)
		wantField(t, resp, "RateLimit", fmt.Sprintf(`"all";r=%d;t=60`, 3-i))
		wantField(t, resp, "RateLimit-Policy", `"all";q=4;w=60`)
	}
	wantStatus(t, get(h, "/?key=free", from("192.0.2.2:1")), 200)
	wantStatus(t, get(h, "/", from("192.0.2.2:1")), 200)
	p := wantProblem(t, get(h, "/?key=free", from("192.0.2.2:1")), 429, quotaExceeded)
	if fmt.Sprint(p.Violated) != "[all]" {
		t.Errorf("violated %v, want the rule that counts", p.Violated)
	}
	alone := wrap(newRules(t, policy.RuleConfig{Name: "r", Match: "/", Exempt: []string{"0.0.0.0/0"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}}), newStore(newClock()), &counter{})
	for range 3 {
		resp := get(alone, "/")
		wantStatus(t, resp, 200)
		wantField(t, resp, "RateLimit", "")
	}
}

// OnDeny also hears of those denied by a list, and can answer them.
func TestOnDenyOfAList(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Deny: []string{"192.0.2.0/24"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}})
	var got []sluice.Decision
	h := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(newStore(newClock())), OnDeny: func(w http.ResponseWriter, r *http.Request, d sluice.Decision) {
		got = append(got, d)
		if r.URL.Path == "/own" {
			_, _ = io.WriteString(w, "own")
		}
	}}).Wrap(&counter{})
	wantProblem(t, get(h, "/", from("192.0.2.1:1")), 403, "about:blank")
	resp := get(h, "/own", from("192.0.2.1:1"))
	wantStatus(t, resp, 403)
	if b := body(t, resp); b != "own" {
		t.Errorf("body %q, want own", b)
	}
	if len(got) != 2 || got[0] != (sluice.Decision{RetryAfter: sluice.Never}) {
		t.Errorf("OnDeny was told %+v", got)
	}
}

// What OnDeny does through a ResponseController counts as its answer.
func TestOnDenyByController(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Denial: policy.Denial{Status: 420}, Deny: []string{"127.0.0.0/8"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}})
	for name, tt := range map[string]struct {
		do     func(w http.ResponseWriter) error
		status int
		body   string
	}{
		"flush":    {func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }, 420, ""},
		"Flusher":  {func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil }, 420, ""},
		"deadline": {func(w http.ResponseWriter) error { return http.NewResponseController(w).SetWriteDeadline(time.Time{}) }, 420, `{"type":"about:blank","title":"Refused","status":420}` + "\n"},
		"hijack": {func(w http.ResponseWriter) error {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.WriteString(conn, "HTTP/1.1 444 Own\r\nContent-Length: 3\r\nConnection: close\r\n\r\nown")
			return err
		}, 444, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(newStore(newClock())), OnDeny: func(w http.ResponseWriter, r *http.Request, d sluice.Decision) {
				if err := tt.do(w); err != nil {
					t.Error(err)
				}
			}}).Wrap(&counter{}))
			srv.Config.ErrorLog = log.New(complaints{t}, "", 0)
			srv.Start()
			defer srv.Close()
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			wantStatus(t, resp, tt.status)
			if got := body(t, resp); got != tt.body {
				t.Errorf("body %q, want %q", got, tt.body)
			}
		})
	}
}

// complaints are a server's, of which there are to be none.
type complaints struct{ t *testing.T }

func (c complaints) Write(b []byte) (int, error) {
	c.t.Errorf("the server complains: %s", b)
	return len(b), nil
}

// A shadow limit is decided on its own key and reported; it refuses nobody, holds nobody, and no client hears of it.
func TestShadowLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict, queue := limit(t, "fixed_window", "1/h", "ip"), limit(t, "leaky_bucket", "1/h", "ip", 100)
		strict.Name, strict.Shadow = "strict", true
		queue.Name, queue.Shadow = "queue", true
		rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{strict, limit(t, "fixed_window", "3/h", "ip"), queue}})
		seen := map[string]string{}
		store := sluice.Observe(local.New(local.Options{}), sluice.ObserverFunc(func(_ context.Context, a sluice.Ask, d sluice.Decision, err error, _ time.Duration) {
			seen[a.Key.Rule] += map[bool]string{true: "+", false: "-"}[d.Allowed]
		}))
		h, start := wrap(rules, store, &counter{}), time.Now()
		for i := range 3 {
			resp := get(h, "/")
			wantStatus(t, resp, 200)
			wantField(t, resp, "RateLimit-Policy", `"r";q=3;w=3600`)
			if got := resp.Header.Get("RateLimit"); !strings.HasPrefix(got, fmt.Sprintf(`"r";r=%d;`, 2-i)) || strings.Contains(got, ",") {
				t.Errorf("RateLimit: %s", got)
			}
		}
		wantProblem(t, get(h, "/"), 429, quotaExceeded)
		if took := time.Since(start); took != 0 {
			t.Errorf("held %v, want not at all", took)
		}
		// The refused request is charged to no limit, those in the shadow included.
		if fmt.Sprint(seen) != "map[r:+++- r/queue:+++ r/strict:+--]" {
			t.Errorf("the observer saw %v", seen)
		}
	})
}

// A store that fails a shadow alone fails no request.
func TestShadowLimitErrors(t *testing.T) {
	shadow := limit(t, "fixed_window", "1/h", "ip")
	shadow.Shadow = true
	broken := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{shadow}})
	resp := get(wrap(rules, broken, &counter{}), "/")
	wantStatus(t, resp, 200)
	wantField(t, resp, "RateLimit", "")
}

// In an outage a rule of shadows alone does not decide for rules that refuse, whichever stands first.
func TestShadowHasNoSayInAnOutage(t *testing.T) {
	shadow := limit(t, "fixed_window", "1/h", "ip")
	shadow.Shadow = true
	rule := func(name, match string, on policy.OnOutage, l policy.LimitConfig) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: match, OnOutage: on, Limits: []policy.LimitConfig{l}}
	}
	plain := limit(t, "fixed_window", "9/h", "ip")
	for name, tt := range map[string]struct {
		rules []policy.RuleConfig
		want  policy.OnOutage
	}{
		"shadow behind":   {[]policy.RuleConfig{rule("a", "/", policy.Allow, plain), rule("s", "always", policy.Deny, shadow)}, policy.Allow},
		"shadow before":   {[]policy.RuleConfig{rule("s", "/", policy.Deny, shadow), rule("a", "always", policy.Allow, plain)}, policy.Allow},
		"shadows alone":   {[]policy.RuleConfig{rule("s", "/", policy.Deny, shadow), rule("t", "always", policy.Allow, shadow)}, policy.Deny},
		"loose shadow":    {[]policy.RuleConfig{rule("s", "/", policy.Allow, shadow), rule("a", "always", policy.Deny, plain)}, policy.Deny},
		"between refused": {[]policy.RuleConfig{rule("a", "/", policy.Local, plain), rule("s", "always", policy.Deny, shadow), rule("b", "always", policy.Allow, plain)}, policy.Local},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newStore(newClock())
			stores, used := map[policy.OnOutage]sluice.Store{}, map[policy.OnOutage]bool{}
			for _, on := range []policy.OnOutage{policy.Local, policy.Allow, policy.Deny} {
				stores[on] = sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
					used[on] = true
					return shared.Take(ctx, a)
				})
			}
			wantStatus(t, get(httplimit.New(httplimit.Options{Rules: newRules(t, tt.rules...), Stores: stores}).Wrap(&counter{}), "/"), 200)
			if len(used) != 1 || !used[tt.want] {
				t.Errorf("decided by the stores of %v, want %s", used, tt.want)
			}
		})
	}
}

// In shadow mode everything is decided, charged and reported, and the client sees nothing of it.
func TestModeShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shadow := limit(t, "fixed_window", "9/h", "global")
		shadow.Name, shadow.Shadow = "s", true
		rules := sluice.Must(policy.New(policy.Config{Mode: policy.ModeShadow, Rules: []policy.RuleConfig{
			{Name: "w", Match: "/w", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "ip"), shadow}},
			{Name: "q", Match: "/q", Limits: []policy.LimitConfig{limit(t, "leaky_bucket", "1/h", "ip", 9)}},
			{Name: "d", Match: "/d", Deny: []string{"192.0.2.0/24"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "ip")}},
		}}))
		seen := map[string]string{}
		inner := sluice.Store(local.New(local.Options{}))
		store := sluice.Observe(sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) { return inner.Take(ctx, a) }),
			sluice.ObserverFunc(func(_ context.Context, a sluice.Ask, d sluice.Decision, err error, _ time.Duration) {
				seen[a.Key.Rule] += map[bool]string{true: "+", false: "-"}[d.Allowed]
			}))
		next := &counter{}
		var told []error
		h := httplimit.New(httplimit.Options{
			Rules: rules, Stores: everywhere(store),
			OnDeny:  func(http.ResponseWriter, *http.Request, sluice.Decision) { t.Error("OnDeny was called") },
			OnError: func(_ *http.Request, err error) { told = append(told, err) },
		}).Wrap(next)
		start := time.Now()
		for _, path := range []string{"/w", "/w", "/q", "/q", "/d"} {
			resp := get(h, path, from("192.0.2.1:1"))
			wantStatus(t, resp, 200)
			for _, field := range []string{"RateLimit", "RateLimit-Policy", "Retry-After", "Cache-Control"} {
				wantField(t, resp, field, "")
			}
		}
		if fmt.Sprint(seen) != "map[q:++ w:+- w/s:+]" {
			t.Errorf("the observer saw %v", seen)
		}
		inner = sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
			return sluice.Decision{}, sluice.ErrUnavailable
		})
		wantStatus(t, get(h, "/w"), 200)
		if n := next.calls.Load(); n != 6 || len(told) != 1 || time.Since(start) != 0 {
			t.Errorf("next ran %d times in %v, OnError was told %v: want 6, at once, 1", n, time.Since(start), told)
		}
	})
}

// An override is another limit on the same key: usage is kept when it begins and ends.
func TestOverridesOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit(t, "fixed_window", "2/h", "header:X-API-Key")
		l.Overrides = []policy.OverrideConfig{{Subject: "acme", Limit: sluice.Must(sluice.ParseLimit("5/h")), Until: time.Now().Add(10 * time.Minute)}}
		h := wrap(newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{l}}), local.New(local.Options{}), &counter{})
		codes := func(key string, n int) string {
			var list []string
			for range n {
				list = append(list, fmt.Sprint(get(h, "/", with("X-API-Key", key)).StatusCode))
			}
			return strings.Join(list, " ")
		}
		if got := codes("other", 3); got != "200 200 429" {
			t.Errorf("other: %s", got)
		}
		if got := codes("acme", 4); got != "200 200 200 200" {
			t.Errorf("acme: %s", got)
		}
		wantField(t, get(h, "/", with("X-API-Key", "acme")), "RateLimit-Policy", `"r";q=5;w=3600`)
		time.Sleep(10 * time.Minute)
		if got := codes("acme", 1); got != "429" {
			t.Errorf("acme, afterwards: %s, want 429: four were spent", got)
		}
	})
}

// Bodies of refusals are written over a real connection as a whole, and the connection lives on.
func TestDeniedKeepsConnection(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Deny: []string{"127.0.0.0/8"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/min", "ip")}})
	srv := httptest.NewUnstartedServer(wrap(rules, newStore(newClock()), &counter{}))
	var conns atomic.Int64
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	for range 5 {
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		wantProblem(t, resp, 403, "about:blank")
		resp.Body.Close()
	}
	srv.Close()
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
