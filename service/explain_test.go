package service_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/redis"
)

const explainedRules = `
trusted_proxies: [10.0.0.0/8]
mode: MODE
STORE
rules:
  - name: login
    match: "POST /login"
    denial: {status: 420}
    exempt: [192.0.2.99]
    deny: [198.51.100.0/24, "header:X-API-Key=banned"]
    limits:
      - {algorithm: token_bucket, limit: 2/h, subject: ip}
      - {algorithm: fixed_window, limit: 1000/h, subject: global}
      - {name: next, algorithm: token_bucket, limit: 1/h, subject: ip, shadow: true}
  - name: api
    match: /api/
    cost: {header: X-Cost, max: 100}
    limits:
      - algorithm: sliding_window
        limit: 10/h
        subject: header:X-API-Key
        overrides: [{subject: gold, limit: 1000/h}]
  - name: orders
    match: /api/orders
    deny: [203.0.113.9]
    limits:
      - {algorithm: leaky_bucket, limit: 60/h, burst: 5, subject: ip}
  - name: all
    match: always
    limits:
      - {algorithm: fixed_window, limit: 1000/h, subject: global}
`

func explainedBy(t *testing.T, mode, store string) *policy.Rules {
	t.Helper()
	text := strings.NewReplacer("MODE", mode, "STORE", store).Replace(explainedRules)
	c, err := rulefile.Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func asked(method, target, peer string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = peer + ":4711"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func names(rules []*policy.Rule) string {
	var list []string
	for _, r := range rules {
		list = append(list, r.Name)
	}
	return strings.Join(list, " ")
}

// holding are the names of the rules that hold, and how each takes the request.
func holding(e service.Explanation) string {
	var list []string
	for _, a := range e.Rules {
		list = append(list, a.Rule.Name+":"+a.Standing.String())
	}
	return strings.Join(list, " ")
}

func TestExplain(t *testing.T) {
	rules := explainedBy(t, "enforce", "")
	for _, tt := range []struct {
		name   string
		req    *http.Request
		holds  string
		hidden string
		passes bool
		status int
		note   string
	}{
		{"plain", asked("POST", "/login", "192.0.2.1"), "login:counted all:counted", "", true, 0, ""},
		{"alias", asked("POST", "/x/..//login", "192.0.2.1"), "login:counted all:counted", "", true, 0, ""},
		{"another method", asked("GET", "/login", "192.0.2.1"), "all:counted", "", true, 0, ""},
		{"exempt", asked("POST", "/login", "192.0.2.99"), "login:exempt all:counted", "", true, 0, ""},
		{"denied by address", asked("POST", "/login", "198.51.100.7"), "login:denied all:counted", "", false, 420, ""},
		{"denied by a secret", asked("POST", "/login", "192.0.2.1", "X-API-Key", "banned"), "login:denied all:counted", "", false, 420, ""},
		{"spoofed", asked("POST", "/login", "192.0.2.1", "X-Forwarded-For", "198.51.100.7"), "login:counted all:counted", "", true, 0, ""},
		{"from a proxy", asked("POST", "/login", "10.0.0.1", "X-Forwarded-For", "198.51.100.7"), "login:denied all:counted", "", false, 420, ""},
		{"broader rules are hidden", asked("GET", "/api/orders", "192.0.2.1"), "orders:counted all:counted", "api", true, 0, ""},
		{"cost above the burst", asked("GET", "/api/x", "10.0.0.1", "X-Cost", "11"), "api:counted all:counted", "", false, 429, ""},
		{"cost from a stranger", asked("GET", "/api/x", "192.0.2.1", "X-Cost", "11"), "api:counted all:counted", "", true, 0, ""},
		{"override", asked("GET", "/api/x", "10.0.0.1", "X-Cost", "11", "X-API-Key", "gold"), "api:counted all:counted", "", true, 0, ""},
		{"preflight", asked("OPTIONS", "/api/x", "192.0.2.1", "Origin", "https://a", "Access-Control-Request-Method", "GET"), "", "", true, 0, "preflight"},
		{"denied preflight", asked("OPTIONS", "/api/orders", "203.0.113.9", "Origin", "https://a", "Access-Control-Request-Method", "GET"), "orders:denied all:counted", "api", false, 403, ""},
	} {
		e := service.Explain(t.Context(), rules, nil, tt.req, nil)
		if holding(e) != tt.holds || names(e.Hidden) != tt.hidden || e.Passes != tt.passes || e.Status != tt.status || !strings.Contains(e.Note, tt.note) {
			t.Errorf("%s: holds %q, hidden %q, passes %v, status %d, note %q: want %q, %q, %v, %d, %q",
				tt.name, holding(e), names(e.Hidden), e.Passes, e.Status, e.Note, tt.holds, tt.hidden, tt.passes, tt.status, tt.note)
		}
	}
}

func TestExplainModes(t *testing.T) {
	for mode, part := range map[string]string{"off": "off", "shadow": "shadow", "local": "local"} {
		rules := explainedBy(t, mode, "")
		e := service.Explain(t.Context(), rules, nil, asked("GET", "/api/x", "10.0.0.1", "X-Cost", "11"), nil)
		if refused := mode == "local"; e.Passes == refused || !strings.Contains(e.Note, part) {
			t.Errorf("mode %s: passes %v, note %q", mode, e.Passes, e.Note)
		}
	}
}

// What Explain says of a request is what the middleware of a service then does, and it changes nothing.
func TestExplainIsTrue(t *testing.T) {
	server := redistest.Start(t)
	prefix := "explain"
	path := write(t, "", strings.NewReplacer("MODE", "enforce", "STORE", fmt.Sprintf("store: {redis: \"redis://%s\", prefix: %s, timeout: 5s}", server.Addr, prefix)).Replace(explainedRules))
	s := open(t, path, service.Options{}.Quickly())
	store := redis.New(server.Client(), redis.Options{Prefix: prefix, Timeout: 5 * time.Second, NoKnownDenials: true})
	defer store.Close()
	requests := []func() *http.Request{
		func() *http.Request { return asked("POST", "/login", "192.0.2.1") },
		func() *http.Request { return asked("POST", "/login", "198.51.100.1") },
		func() *http.Request { return asked("GET", "/api/x", "10.0.0.1", "X-Cost", "4", "X-API-Key", "one") },
		func() *http.Request { return asked("GET", "/api/orders", "192.0.2.2") },
	}
	for range 4 {
		for _, made := range requests {
			if made().URL.Path == "/api/orders" {
				continue // a request would be held: see below
			}
			said := service.Explain(t.Context(), s.Rules(), store, made(), nil)
			if said.Err != nil {
				t.Fatal(said.Err)
			}
			w := httptest.NewRecorder()
			s.Middleware(ok).ServeHTTP(w, made())
			if passed := w.Code == http.StatusOK; passed != said.Passes || !passed && w.Code != said.Status {
				t.Errorf("%s: status %d, and said was passes %v, status %d", made().URL, w.Code, said.Passes, said.Status)
			}
		}
	}
	look := func() service.Explanation {
		return service.Explain(t.Context(), s.Rules(), store, asked("POST", "/login", "192.0.2.1"), nil)
	}
	calls := redistest.CallsOf(t, server.Client(), func() { look() })
	if calls["hset"]+calls["pexpire"]+calls["del"] != 0 {
		t.Errorf("calls %v, want no write", calls)
	}
	e := look()
	l := e.Rules[0].Limits[0]
	if l.Ask.Mode != sluice.Peek {
		t.Errorf("the ask is a %v", l.Ask.Mode)
	}
	if e.Passes || e.Status != 420 || e.RetryAfter <= 0 || e.RetryAfter > 30*time.Minute || l.Decision.Remaining != 0 ||
		l.Key != prefix+":{192.0.2.1}:login/token_bucket-ip:token_bucket" {
		t.Errorf("%+v, want a denial by the first limit", e)
	}
	if cost := int64(0); !service.Explain(t.Context(), s.Rules(), store, asked("POST", "/login", "192.0.2.1"), &cost).Passes {
		t.Error("a cost of 0 is refused")
	}
}

// The requests of a queue are held as Explain says.
func TestExplainDelay(t *testing.T) {
	server := redistest.Start(t)
	rules := explainedBy(t, "enforce", "")
	store := redis.New(server.Client(), redis.Options{Timeout: 5 * time.Second})
	defer store.Close()
	req := asked("GET", "/api/orders", "192.0.2.2")
	for i := range 6 {
		e := service.Explain(t.Context(), rules, store, req, nil)
		if full := i == 5; e.Passes == full || (e.Delay > 0) != (i > 0 && !full) {
			t.Errorf("request %d: passes %v, delay %v", i, e.Passes, e.Delay)
		}
		if _, err := store.Take(t.Context(), rules.Match(req)[0].Asks(req, 1)[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// A store that is away is asked once, and no verdict is made up; a denial by list needs no store.
func TestExplainAway(t *testing.T) {
	server := redistest.Start(t)
	rules := explainedBy(t, "enforce", "")
	store := redis.New(server.Client(), redis.Options{Timeout: time.Second})
	defer store.Close()
	server.Stop()
	start := time.Now()
	e := service.Explain(t.Context(), rules, store, asked("POST", "/login", "192.0.2.1"), nil)
	if took := time.Since(start); !errors.Is(e.Err, sluice.ErrUnavailable) || e.Passes || took > 2500*time.Millisecond {
		t.Errorf("%v, passes %v after %v", e.Err, e.Passes, took)
	}
	if slices.ContainsFunc(e.Rules[0].Limits, func(l service.LimitAnswer) bool { return l.Err == nil || l.Key == "" }) {
		t.Errorf("%+v, want an error and a key each", e.Rules[0].Limits)
	}
	e = service.Explain(t.Context(), rules, store, asked("POST", "/login", "198.51.100.1"), nil)
	if e.Err != nil || e.Passes || e.Status != 420 || len(e.Rules[1].Limits) > 0 {
		t.Errorf("denied by list: %+v", e)
	}
}
