package httplimit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// every is rules with each kind of subject, list, cost and limit that there is.
func every(t testing.TB) policy.Config {
	t.Helper()
	l := func(algorithm, text, subject string) policy.LimitConfig {
		limit := policy.LimitConfig{Algorithm: algorithm, Limit: sluice.Must(sluice.ParseLimit(text)), Subject: subject}
		if policy.HasBurst(algorithm) {
			limit.Limit.Burst = limit.Limit.Count
		}
		return limit
	}
	shadow, tiers := l("token_bucket", "3/s", "ip"), l("sliding_window", "50/10s", "header:X-API-Key")
	shadow.Name, shadow.Shadow = "next", true
	tiers.Overrides = []policy.OverrideConfig{{Subject: "acme", Limit: sluice.Limit{Count: 5000, Period: time.Second}}}
	return policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ff::/48")},
		Rules: []policy.RuleConfig{
			{Name: "all", Match: "always", Limits: []policy.LimitConfig{l("fixed_window", "100000/s", "global"), shadow},
				Exempt: []string{"192.0.2.7", "header:Authorization=Bearer ops"}, Deny: []string{"198.51.100.0/24", "cookie:sid=stolen"}},
			{Name: "api", Match: "/api/", Settle: "response:X-Actual-Cost",
				Cost:   policy.CostConfig{Header: "X-Cost", Min: 1, Max: 100},
				Limits: []policy.LimitConfig{tiers, l("token_bucket", "100/s", "cookie:sid"), l("fixed_window", "500/min", "query:key")}},
			{Name: "users", Match: "GET /users/{id}", Limits: []policy.LimitConfig{l("token_bucket", "20/s", "path:id"), l("token_bucket", "100/s", "ip")}},
			{Name: "host", Match: "admin.example/", Limits: []policy.LimitConfig{l("sliding_window", "10/s", "header:Host")}},
		},
	}
}

// Grammar of the rate fields: structured-field lists whose members are strings with integers.
var (
	quotas = regexp.MustCompile(`^("(?:[ !#-\[\]-~]|\\["\\])*";q=[0-9]{1,15};w=[0-9]{1,15}(?:, |$))*$`)
	states = regexp.MustCompile(`^("(?:[ !#-\[\]-~]|\\["\\])*";r=[0-9]{1,15};t=[0-9]{1,15}(?:, |$))*$`)
	digits = regexp.MustCompile(`^[0-9]+$`)
)

// trial sends requests through rules and checks what holds for every one of them.
type trial struct {
	testing.TB
	handlers map[policy.Headers]http.Handler
	clock    *clock
	subjects map[string]bool // of the asks of the request
	passed   int             // times that the next handler ran
	refused  int             // in all
}

func newTrial(t testing.TB) *trial {
	tr := &trial{TB: t, clock: newClock(), handlers: map[policy.Headers]http.Handler{}, subjects: map[string]bool{}}
	store := newStore(tr.clock)
	spy := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		if err := a.Check(); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
		tr.subjects[a.Key.Subject] = true
		d, err := store.Take(ctx, a)
		d.Delay = 0
		return d, err
	})
	for _, style := range []policy.Headers{policy.HeadersDraft, policy.HeadersX, policy.HeadersOff} {
		rules, err := policy.New(every(t))
		if err != nil {
			t.Fatal(err)
		}
		m := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(spy), Style: style,
			OnError: func(r *http.Request, err error) { t.Errorf("%v: %v", r.URL, err) }})
		tr.handlers[style] = m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tr.passed++
			w.Header()["X-Actual-Cost"] = r.Header["X-Actual-Cost"]
			w.WriteHeader(http.StatusNoContent)
		}))
	}
	return tr
}

// try sends one request.
func (t *trial) try(r *http.Request, style policy.Headers) {
	t.Helper()
	clear(t.subjects)
	t.passed = 0
	w := httptest.NewRecorder()
	t.handlers[style].ServeHTTP(w, r)
	h := w.Result().Header

	describe := func() string {
		return fmt.Sprintf("%s %v, host %q, peer %q, %q: %d %q", r.Method, r.URL, r.Host, r.RemoteAddr, r.Header, w.Code, h)
	}
	switch {
	case w.Code == http.StatusNoContent && t.passed == 1:
	case (w.Code == http.StatusTooManyRequests || w.Code == http.StatusForbidden) && t.passed == 0:
		t.refused++
		if h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/problem+json" {
			t.Errorf("a denial that may be cached, or is no problem: %s", describe())
		}
	default:
		t.Errorf("next ran %d times: %s", t.passed, describe())
	}
	if after := h.Get("Retry-After"); after != "" && (w.Code != http.StatusTooManyRequests || !digits.MatchString(after) || after == "0") {
		t.Errorf("Retry-After %q: %s", after, describe())
	}
	for name, form := range map[string]*regexp.Regexp{
		"RateLimit-Policy": quotas, "RateLimit": states, "X-Ratelimit-Limit": digits, "X-Ratelimit-Remaining": digits, "X-Ratelimit-Reset": digits,
	} {
		lines, mine := h[name], policy.HeadersDraft
		if strings.HasPrefix(name, "X-") {
			mine = policy.HeadersX
		}
		if len(lines) > 0 && mine != style {
			t.Errorf("%s in style %s: %s", name, style, describe())
		}
		for _, line := range lines {
			if !form.MatchString(line) {
				t.Errorf("%s: %q is malformed: %s", name, line, describe())
			}
		}
	}
	for subject := range t.subjects {
		if subject == "" || len(subject) > 100 {
			t.Errorf("subject %q: %s", subject, describe())
		}
		if _, err := netip.ParseAddr(subject); err == nil {
			continue // which a field may hold too
		}
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
			for _, secret := range r.Header[name] {
				if len(secret) > 8 && strings.Contains(subject, secret) {
					t.Errorf("subject %q holds %s: %s", subject, name, describe())
				}
			}
		}
	}
}

// words are what header fields, cookies and queries are made of: good ones, bad ones, and no words at all.
var words = []string{
	"", " ", "0", "1", "-1", "1e30", "0x1", "9223372036854775808", "99", "100", "101", " 5 ", "5,6", "٣", "acme", "stolen", "Bearer ops", "bearer  ops",
	"Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "sid=stolen", "sid=s1; sid=s2", "sid=\"q\"", "=;=", ";;;", "sid", "192.0.2.7", "198.51.100.9", "10.0.0.1", "10.0.0.1, 192.0.2.7",
	"[2001:db8::1]:443", "fe80::1%eth0", "::ffff:192.0.2.7", "unknown", ",,,,", "https://shop.example", "null", "GET", "\x00", "\xff\xfe", "a\r\nX-Injected: 1", "{}", "%", "%zz",
	"ä", "é́", strings.Repeat("k", 200), strings.Repeat("10.0.0.1,", 500), "()", "\"", "\\", "<script>", "${jndi}", "'; DROP TABLE", "sluice:{x}:y",
}

var names = []string{
	"X-Api-Key", "Authorization", "Proxy-Authorization", "Cookie", "X-Cost", "X-Actual-Cost", "X-Forwarded-For", "X-Real-Ip", "Forwarded", "Origin",
	"Access-Control-Request-Method", "Host", "Connection", "Upgrade", "Expect", "Content-Length", "Transfer-Encoding", "Te", "Range", "Accept-Encoding",
	"X-Http-Method-Override", "X-Original-Url", "X-Rewrite-Url", "Retry-After", "RateLimit", "X-Ratelimit-Remaining", "", " ", "ä", "lower-case", "X-API-Key",
}

// word is one of words, or random bytes.
func word(random *rand.Rand) string {
	if random.IntN(4) > 0 {
		return words[random.IntN(len(words))]
	}
	b := make([]byte, random.IntN(64))
	for i := range b {
		b[i] = byte(random.IntN(256))
	}
	return string(b)
}

// anyRequest is a request with random fields. No server would let some of them through; other programs make such too.
func anyRequest(random *rand.Rand) *http.Request {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	r := &http.Request{
		Method:     pick("GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "CONNECT", "PROPFIND", "", "get", "\x00"),
		Host:       pick("shop.example", "admin.example", "admin.example:443", "ADMIN.example.", "[::1]:80", "", ":", "[", word(random)),
		RemoteAddr: pick("203.0.113.9:1", "10.0.0.1:1", "10.0.0.1:1", "[2001:db8:ff::2]:1", "192.0.2.7:1", "198.51.100.3:1", "[fe80::1%eth0]:1", "@", "", word(random)),
		URL: &url.URL{
			Path:     pick("/", "/api/x", "/api/", "/users/1", "/users/%31", "//users//./2", "/users/"+word(random), "", "*", "api", word(random)),
			RawQuery: pick("", "key=k", "key="+word(random), "key=%zz&key=2", "a;b", word(random)),
		},
		Header: http.Header{},
	}
	switch random.IntN(20) {
	case 0:
		r.URL = nil
	case 1:
		r.URL.RawPath = word(random)
	case 2:
		r.Header = nil
		return r
	}
	for range random.IntN(8) {
		name := names[random.IntN(len(names))]
		r.Header[name] = append(r.Header[name], word(random))
	}
	if random.IntN(10) == 0 {
		r.Header[names[random.IntN(len(names))]] = []string{}
	}
	return r
}

// No set of header fields makes the middleware panic, pass a request twice, write a malformed field or keep a secret.
func TestMustAnswerTenThousandHeaderSets(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	trial := newTrial(t)
	styles := []policy.Headers{policy.HeadersDraft, policy.HeadersX, policy.HeadersOff}
	const sets = 10_000
	for i := range sets {
		trial.try(anyRequest(random), styles[i%len(styles)])
		trial.clock.Step(time.Duration(random.IntN(20)) * time.Millisecond)
		if t.Failed() {
			t.Fatalf("request %d", i)
		}
	}
	if trial.refused < sets/20 || trial.refused > sets*19/20 {
		t.Errorf("%d of %d requests were refused: the test hardly tries the one or the other", trial.refused, sets)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("GET", "shop.example", "10.0.0.1:1", "/api/x?key=k", "X-Cost", "7", "X-Forwarded-For", "192.0.2.1, 10.0.0.2")
	f.Add("HEAD", "admin.example:443", "[2001:db8:ff::2]:1", "/users/%31", "Cookie", "sid=stolen", "Authorization", "bearer  ops")
	f.Add("OPTIONS", "", "@", "//users/./2", "Origin", "null", "Access-Control-Request-Method", "GET")
	f.Add("CONNECT", "[", "", "*", "X-Api-Key", "\x00", "X-Api-Key", "acme")
	f.Fuzz(func(t *testing.T, method, host, peer, target, name1, value1, name2, value2 string) {
		r := &http.Request{Method: method, Host: host, RemoteAddr: peer, Header: http.Header{}, URL: &url.URL{Path: target}}
		if u, err := url.ParseRequestURI(target); err == nil {
			r.URL = u
		}
		r.Header[http.CanonicalHeaderKey(name1)] = append(r.Header[http.CanonicalHeaderKey(name1)], value1)
		r.Header[http.CanonicalHeaderKey(name2)] = append(r.Header[http.CanonicalHeaderKey(name2)], value2)
		for style := range map[policy.Headers]bool{policy.HeadersDraft: true, policy.HeadersX: true, policy.HeadersOff: true} {
			newTrial(t).try(r, style)
		}
	})
}

// Numbers beyond what a structured field holds are cut, not malformed; names are ASCII whatever they were.
func TestMustWriteWellFormedFields(t *testing.T) {
	for _, rule := range []string{"login", "", `quo"te\`, "ümlaut", "new\nline", "\x00\xff"} {
		for _, d := range []sluice.Decision{
			{Allowed: true, Limit: math.MaxInt64, Remaining: math.MaxInt64, ResetAfter: math.MaxInt64},
			{Allowed: true, Limit: -1, Remaining: -1, ResetAfter: -1},
			{Limit: 1, RetryAfter: 1},
			{Limit: 1, RetryAfter: sluice.Never},
			{},
		} {
			store := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return d, nil })
			h := get(httplimit.Limit(sluice.New(store, window(5, time.Minute), rule), nil)(&counter{}), "/").Header
			if !quotas.MatchString(h.Get("RateLimit-Policy")) || !states.MatchString(h.Get("RateLimit")) || h.Get("RateLimit") == "" {
				t.Errorf("rule %q, %+v: %q", rule, d, h)
			}
			if after := h.Get("Retry-After"); !d.Allowed && d.RetryAfter != sluice.Never {
				if s, err := strconv.Atoi(after); err != nil || s < 1 {
					t.Errorf("%+v: Retry-After %q", d, after)
				}
			} else if after != "" {
				t.Errorf("%+v: Retry-After %q, want none", d, after)
			}
		}
	}
}
