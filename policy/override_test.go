package policy_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

func TestOverrides(t *testing.T) {
	t.Setenv("SLUICE_TEST_KEY", "from-env")
	noon := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	of := func(count int64) algorithm.Limit {
		return algorithm.Limit{Count: count, Period: time.Minute, Burst: count}
	}
	limit := perMinute("header:X-API-Key")
	limit.Overrides = []policy.OverrideConfig{
		{Subject: "acme", Limit: of(100)},
		{Subject: "late", Limit: of(200), Until: noon},
		{Subject: "env:SLUICE_TEST_KEY", Limit: of(300)},
		{SubjectKey: "192.0.2.7", Limit: of(400)},
		{Subject: "both", Limit: of(500)},
	}
	plain := mustRules(t, policy.RuleConfig{Name: "api", Match: "/", Limits: []policy.LimitConfig{limit}}).All()[0].Limits[0]
	key := func(text string) string {
		key, err := plain.SubjectKey(text)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	limit.Overrides = append(limit.Overrides, policy.OverrideConfig{SubjectKey: key("both"), Limit: of(600), Until: noon})
	rule := mustRules(t, policy.RuleConfig{Name: "api", Match: "/", Limits: []policy.LimitConfig{limit}}).All()[0]
	l := &rule.Limits[0]

	for _, tt := range []struct {
		subject string
		at      time.Time
		want    int64
	}{
		{key("acme"), noon, 100},
		{key("other"), noon, 5},
		{"acme", noon, 5},
		{key("late"), noon.Add(-1), 200},
		{key("late"), noon, 5},
		{key("from-env"), noon, 300},
		{key("env:SLUICE_TEST_KEY"), noon, 5},
		{"192.0.2.7", noon, 400},
		{key("both"), noon.Add(-1), 600}, // one by key goes before
		{key("both"), noon, 500},         // and when it ends the other holds
	} {
		if got := l.StrategyFor(tt.subject, tt.at).Limit().Count; got != tt.want {
			t.Errorf("%s at %v: %d a minute, want %d", tt.subject, tt.at, got, tt.want)
		}
	}

	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.7:1"
	if a := rule.Asks(r, 3)[0]; a.Strategy.Limit().Count != 400 || a.Key.Subject != "192.0.2.7" || a.N != 3 {
		t.Errorf("without the header: got %+v, want the override of the address", a)
	}
	r.Header.Set("X-API-Key", " acme ")
	a := rule.Asks(r, 1)[0]
	if a.Strategy.Limit().Count != 100 || a.Key.Rule != "api" {
		t.Errorf("got %+v, want the override on the rule's own key", a)
	}
	if a.Key.Subject != key("acme") || strings.Contains(a.Key.Subject, "acme") {
		t.Errorf("the subject is %s, want the hash %s", a.Key.Subject, key("acme"))
	}
}

// What an operator writes becomes the key that requests of that subject have.
func TestSubjectKeyIsThatOfRequests(t *testing.T) {
	r := httptest.NewRequest("GET", "/users/7?q=v%20w", nil)
	r.RemoteAddr = "[2001:db8:1:2::3]:9"
	r.Header.Set("Cookie", "sid=c")
	r.Header.Set("Authorization", "BEARER  t")
	for subject, texts := range map[string][]string{
		"ip":                   {"2001:db8:1:2::3", "2001:DB8:1:2::", "2001:db8:1:2::/64", "2001:db8:1:2::9%eth0"},
		"global":               {"global"},
		"header:authorization": {"Bearer t", "bearer   t"},
		"header:Host":          {"example.com"},
		"cookie:sid":           {"c", " c "},
		"query:q":              {"v w"},
		"path:id":              {"7"},
	} {
		rules := mustRules(t, policy.RuleConfig{Name: "a", Match: "/users/{id}", Limits: []policy.LimitConfig{perMinute(subject)}})
		l := &rules.All()[0].Limits[0]
		want := l.Subject(r)
		for _, text := range texts {
			if got, err := l.SubjectKey(text); err != nil || got != want {
				t.Errorf("%s of %q: %q, %v, want %q", subject, text, got, err, want)
			}
		}
		if _, err := l.SubjectKey(""); err == nil {
			t.Errorf("%s of nothing: no error", subject)
		}
		key, err := rules.AddressKey("2001:db8:1:2::3")
		if err != nil || key != "2001:db8:1:2::/64" {
			t.Errorf("AddressKey: %q, %v", key, err)
		}
	}
	rules := mustRules(t, ruleFor("/")...)
	if _, err := rules.AddressKey("secret"); err == nil {
		t.Error("AddressKey of no address: no error")
	}
	if _, err := rules.All()[0].Limits[0].SubjectKey("s3cret"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want an error that does not repeat the text", err)
	}
	if key, err := rules.All()[0].Limits[0].SubjectKey("unknown"); err != nil || key != "unknown" {
		t.Errorf("of requests without an address: %q, %v", key, err)
	}
	if _, err := new(policy.Limit).SubjectKey("x"); err == nil {
		t.Error("of the zero Limit: no error")
	}
}

// max_delay is the burst in another form: as many as leave within that time, and the one now leaving.
func TestMaxDelay(t *testing.T) {
	for _, tt := range []struct {
		count  int64
		period time.Duration
		burst  int64
		delay  time.Duration
		want   int64
	}{
		{10, time.Second, 100, 2 * time.Second, 21},
		{10, time.Second, 5, 2 * time.Second, 5},
		{10, time.Second, 0, 2 * time.Second, 21},
		{10, time.Second, 0, 199 * time.Millisecond, 2},
		{10, time.Second, 0, 99 * time.Millisecond, 1},
		{10, time.Second, 0, time.Nanosecond, 1},
		{3, 7 * time.Second, 0, 7 * time.Second, 4},
		{1, time.Hour, 9, 1<<63 - 1, 9},
		{algorithm.Bound / 4, time.Second, 9, 1<<63 - 1, 9},
	} {
		c := policy.LimitConfig{Algorithm: "leaky", Limit: algorithm.Limit{Count: tt.count, Period: tt.period, Burst: tt.burst}, Subject: "ip", MaxDelay: tt.delay}
		c.Overrides = []policy.OverrideConfig{{Subject: "192.0.2.1", Limit: c.Limit}}
		l := mustRules(t, policy.RuleConfig{Name: "a", Match: "/", Limits: []policy.LimitConfig{c}}).All()[0].Limits[0]
		for what, st := range map[string]algorithm.Strategy{"limit": l.Strategy, "override": l.StrategyFor("192.0.2.1", time.Time{})} {
			if got := st.Limit().Burst; got != tt.want {
				t.Errorf("%s, %d per %v, burst %d, at most %v: burst %d, want %d", what, tt.count, tt.period, tt.burst, tt.delay, got, tt.want)
			}
			var s algorithm.State
			for range min(tt.want, 30) {
				var d algorithm.Decision
				if s, d = st.Take(s, 0, 1); !d.Allowed || d.Delay-tt.delay > time.Microsecond {
					t.Errorf("%s, %d per %v: allowed %v, held %v, want at most %v", what, tt.count, tt.period, d.Allowed, d.Delay, tt.delay)
				}
			}
		}
	}
}

// A shadow has a key of its own and changes none of the others'.
func TestShadowKeys(t *testing.T) {
	one, two, shadow := perMinute("ip"), perMinute("global"), perMinute("cookie:sid")
	shadow.Shadow = true
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:1"
	for _, tt := range []struct {
		limits []policy.LimitConfig
		keys   string // of all limits
		asks   int
	}{
		{[]policy.LimitConfig{one}, "a", 1},
		{[]policy.LimitConfig{one, shadow}, "a a/token_bucket-cookie:sid", 1},
		{[]policy.LimitConfig{shadow, one}, "a/token_bucket-cookie:sid a", 1},
		{[]policy.LimitConfig{one, two}, "a/token_bucket-ip a/token_bucket-global", 2},
		{[]policy.LimitConfig{one, two, shadow}, "a/token_bucket-ip a/token_bucket-global a/token_bucket-cookie:sid", 2},
		{[]policy.LimitConfig{shadow}, "a/token_bucket-cookie:sid", 0},
	} {
		rule := mustRules(t, policy.RuleConfig{Name: "a", Match: "/", Limits: tt.limits}).All()[0]
		var keys []string
		for i := range rule.Limits {
			keys = append(keys, rule.Limits[i].Ask(r, 1).Key.Rule)
		}
		if got := strings.Join(keys, " "); got != tt.keys {
			t.Errorf("keys %s, want %s", got, tt.keys)
		}
		if asks := rule.Asks(r, 1); len(asks) != tt.asks || rule.Enforced() != tt.asks {
			t.Errorf("%s: %d asks, Enforced %d, want %d", tt.keys, len(asks), rule.Enforced(), tt.asks)
		}
	}
}
