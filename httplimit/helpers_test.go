package httplimit_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
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

// counter is a next handler that counts its calls.
type counter struct{ calls atomic.Int64 }

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.calls.Add(1)
	_, _ = io.WriteString(w, "ok")
}

func get(h http.Handler, target string, edit ...func(*http.Request)) *http.Response {
	return do(h, http.MethodGet, target, edit...)
}

func do(h http.Handler, method, target string, edit ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func from(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantStatus(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		t.Errorf("status %d, want %d", resp.StatusCode, want)
	}
}

// wantField compares a field's lines, joined as the list that they mean; "" is an absent field.
func wantField(t *testing.T, resp *http.Response, name, want string) {
	t.Helper()
	if got := strings.Join(resp.Header.Values(name), ", "); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

type problemBody struct {
	Type, Title string
	Status      int
	Violated    []string `json:"violated-policies"`
}

// wantProblem checks that the answer is a whole problem of that status and type, not to be cached.
func wantProblem(t *testing.T, resp *http.Response, status int, typ string) problemBody {
	t.Helper()
	wantStatus(t, resp, status)
	wantField(t, resp, "Content-Type", "application/problem+json")
	wantField(t, resp, "Cache-Control", "no-store")
	var p problemBody
	text := body(t, resp)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("body %q: %v", text, err)
	}
	if p.Type != typ || p.Status != status || p.Title == "" {
		t.Errorf("problem %+v, want type %s, status %d and a title", p, typ, status)
	}
	return p
}

const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

func newRules(t *testing.T, rules ...policy.RuleConfig) *policy.Rules {
	t.Helper()
	r, err := policy.New(policy.Config{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// limit is one limit of a rule; the burst of the bucket and the queue is the limit's, else its count.
func limit(t *testing.T, algorithm, text, subject string, burst ...int64) policy.LimitConfig {
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

// everywhere is one store for every on_outage.
func everywhere(s sluice.Store) map[policy.OnOutage]sluice.Store {
	return map[policy.OnOutage]sluice.Store{policy.Local: s, policy.Allow: s, policy.Deny: s}
}

func wrap(rules *policy.Rules, s sluice.Store, next http.Handler) http.Handler {
	return httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(s)}).Wrap(next)
}
