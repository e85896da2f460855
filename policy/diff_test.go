package policy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// shop is a configuration to edit: a rule with two limits, and one of each algorithm by itself.
func shop() policy.Config {
	one := func(name, algo, subject string, l algorithm.Limit) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: "/" + name, Limits: []policy.LimitConfig{{Algorithm: algo, Limit: l, Subject: subject}}}
	}
	minute := algorithm.Limit{Count: 60, Period: time.Minute}
	bucket := minute
	bucket.Burst = 60
	return policy.Config{
		Rules: []policy.RuleConfig{
			{Name: "login", Match: "/login", Limits: []policy.LimitConfig{
				{Algorithm: "token_bucket", Limit: bucket, Subject: "ip"},
				{Name: "all", Algorithm: "fixed_window", Limit: minute, Subject: "global"},
			}},
			one("bucket", "token_bucket", "ip", bucket),
			one("fixed", "fixed_window", "ip", minute),
			one("sliding", "sliding_window", "header:X-API-Key", minute),
			one("leaky", "leaky_bucket", "ip", bucket),
		},
	}
}

// effects are the edits, and what they do to the usage of the limits that the request to /<rule> finds.
var effects = []struct {
	name   string
	rule   string // as it is after the edit
	edit   func(c *policy.Config)
	effect policy.Effect // of each changed limit of that rule
	why    string        // part of it
}{
	{"nothing", "bucket", func(c *policy.Config) {}, "", ""},
	{"count", "bucket", func(c *policy.Config) { c.Rules[1].Limits[0].Limit.Count = 600 }, policy.EffectKeeps, "count 600, was 60"},
	{"burst", "bucket", func(c *policy.Config) { c.Rules[1].Limits[0].Limit.Burst = 6 }, policy.EffectKeeps, "burst 6, was 60"},
	{"period of a bucket", "bucket", func(c *policy.Config) { c.Rules[1].Limits[0].Limit.Period = time.Hour }, policy.EffectKeeps, "period h, was min"},
	{"leaky", "leaky", func(c *policy.Config) { c.Rules[4].Limits[0].Limit.Count = 120 }, policy.EffectKeeps, "count 120"},
	{"max_delay", "leaky", func(c *policy.Config) { c.Rules[4].Limits[0].MaxDelay = 10 * time.Second }, policy.EffectKeeps, "burst 11, was 60"},
	{"count of a window", "fixed", func(c *policy.Config) { c.Rules[2].Limits[0].Limit.Count = 50 }, policy.EffectKeeps, "count 50"},
	{"period of a fixed window", "fixed", func(c *policy.Config) { c.Rules[2].Limits[0].Limit.Period = time.Hour }, policy.EffectAfresh, "another length"},
	{"period of a sliding window", "sliding", func(c *policy.Config) { c.Rules[3].Limits[0].Limit.Period = 7 * time.Second }, policy.EffectAfresh, "another length"},
	{"algorithm", "bucket", func(c *policy.Config) { c.Rules[1].Limits[0].Algorithm = "leaky_bucket" }, policy.EffectAfresh, "roll-back finds them"},
	{"subject", "bucket", func(c *policy.Config) { c.Rules[1].Limits[0].Subject = "header:X-API-Key" }, policy.EffectAfresh, "subject header:X-API-Key, was ip"},
	{"spelling of a header", "sliding", func(c *policy.Config) { c.Rules[3].Limits[0].Subject = "header:x-api-KEY" }, "", ""},
	{"rule's name", "bucket", func(c *policy.Config) { c.Rules[1].Name = "basin" }, policy.EffectAfresh, "the rule was named bucket"},
	{"limit's name, of several", "login", func(c *policy.Config) { c.Rules[0].Limits[1].Name = "everybody" }, policy.EffectAfresh, "the limit was named all"},
	{"limit's name, of one", "fixed", func(c *policy.Config) { c.Rules[2].Limits[0].Name = "mine" }, "", ""},
	{"a second limit", "fixed", func(c *policy.Config) {
		second := c.Rules[2].Limits[0]
		second.Subject = "global"
		c.Rules[2].Limits = append(c.Rules[2].Limits, second)
	}, policy.EffectAfresh, "its keys were of fixed and are of fixed/fixed_window-ip"},
	{"a second limit in the shadow", "fixed", func(c *policy.Config) {
		second := c.Rules[2].Limits[0]
		second.Subject, second.Shadow = "global", true
		c.Rules[2].Limits = append(c.Rules[2].Limits, second)
	}, policy.EffectNone, "refuses nobody"},
	{"match", "bucket", func(c *policy.Config) { c.Rules[1].Match = "/basin" }, "", ""},
	{"override", "bucket", func(c *policy.Config) {
		c.Rules[1].Limits[0].Overrides = []policy.OverrideConfig{{Subject: "192.0.2.1", Limit: algorithm.Limit{Count: 9, Period: time.Second, Burst: 9}}}
	}, policy.EffectKeeps, "1 added, 0 removed, of 0"},
}

// shopper is a request that a rule of shop matches, with every subject.
func shopper(path string) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = "192.0.2.1:4711"
	r.Header.Set("X-API-Key", "s3cret")
	return r
}

func TestDiffEffects(t *testing.T) {
	for _, tt := range effects {
		t.Run(tt.name, func(t *testing.T) {
			before, after := mustConfig(t, shop()), edited(t, tt.edit)
			d := diffOf(t, before, after)
			var changed []policy.Change
			for _, c := range d.Limits {
				if c.Rule == tt.rule || tt.name == "rule's name" {
					changed = append(changed, c)
				}
			}
			if tt.effect == "" && tt.why == "" {
				if len(d.Limits) != 0 || d.StartsAfresh() {
					t.Errorf("%+v, want no change of a limit", d.Limits)
				}
				return
			}
			if len(changed) == 0 || !slices.ContainsFunc(changed, func(c policy.Change) bool {
				return c.Effect == tt.effect && strings.Contains(strings.Join(c.Why, "; "), tt.why)
			}) {
				t.Errorf("%+v, want %q with %q", changed, tt.effect, tt.why)
			}
			if d.StartsAfresh() != (tt.effect == policy.EffectAfresh) {
				t.Errorf("StartsAfresh is %v of %+v", d.StartsAfresh(), d.Limits)
			}
		})
	}
}

// What Diff says of usage is so, for each edit and from each to each other: a limit that keeps it finds what was charged
// under the old rules, one that starts afresh or is new does not. Each limit of either side is told of once.
func TestDiffIsTrue(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC)
	for _, from := range effects {
		for _, to := range effects {
			before, after := edited(t, from.edit), edited(t, to.edit)
			store := local.New(local.Options{Clock: func() time.Time { return now }})
			charge(t, store, before)
			d := diffOf(t, before, after)
			said, gone := map[string]policy.Change{}, 0
			for _, c := range d.Limits {
				said[c.Rule+"/"+c.Limit] = c
				if strings.HasPrefix(c.Why[0], "was: ") {
					gone++
				}
			}
			if told := len(d.Limits) - gone + d.Same; told != limits(after) || limits(before)-gone > told {
				t.Errorf("%s, then %s: %+v and %d the same, of %d and then %d limits", from.name, to.name, d.Limits, d.Same, limits(before), limits(after))
			}
			for _, rule := range after.All() {
				for i := range rule.Limits {
					l := &rule.Limits[i]
					ask := l.Ask(shopper(rule.Match), 1)
					ask.Mode = sluice.Peek
					got, err := store.Take(t.Context(), ask)
					if err != nil {
						t.Fatal(err)
					}
					c, changed := said[rule.Name+"/"+l.Name]
					lost := changed && (c.Effect == policy.EffectAfresh || strings.HasPrefix(c.Why[0], "new: "))
					if found := got.ResetAfter > 0; found == lost {
						t.Errorf("%s, then %s: of %s/%s it says %+v, and usage is found: %v", from.name, to.name, rule.Name, l.Name, c, found)
					}
				}
			}
		}
	}
}

func limits(rules *policy.Rules) (n int) {
	for _, rule := range rules.All() {
		n += len(rule.Limits)
	}
	return n
}

func charge(t *testing.T, store sluice.Store, rules *policy.Rules) {
	t.Helper()
	for _, rule := range rules.All() {
		for i := range rule.Limits { // the shadows, too
			ask := rule.Limits[i].Ask(shopper(rule.Match), 5)
			if d, err := store.Take(t.Context(), ask); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
	}
}

func TestDiffAddedAndGone(t *testing.T) {
	d := diffOf(t, mustConfig(t, shop()), edited(t, func(c *policy.Config) {
		c.Rules[1] = policy.RuleConfig{Name: "search", Match: "/search", Limits: c.Rules[2].Limits}
		c.Rules[3].Limits[0].Shadow = true
		c.Rules[4].Match = "/" // hides nothing, and is hidden by all
	}))
	for _, want := range []struct {
		limit  string
		effect policy.Effect
	}{{"search/fixed_window-ip", policy.EffectEnforced}, {"bucket/token_bucket-ip", policy.EffectGone}, {"sliding/sliding_window-header:X-API-Key", policy.EffectAfresh}} {
		if !slices.ContainsFunc(d.Limits, func(c policy.Change) bool { return c.Rule+"/"+c.Limit == want.limit && c.Effect == want.effect }) {
			t.Errorf("%+v, want %s %s", d.Limits, want.limit, want.effect)
		}
	}
	if !slices.ContainsFunc(d.Settings, func(c policy.Change) bool {
		return c.Rule == "leaky" && c.Field == "match" && strings.Contains(c.Why[0], "rule fixed is more specific")
	}) {
		t.Errorf("%+v, want it to say what hides rule leaky", d.Settings)
	}
	if d.Same != 4 {
		t.Errorf("%d as they were, want 4", d.Same)
	}
}

// A shadow that is made to refuse keeps what it counted, where its keys stay; where it becomes its rule's only limit
// they do not.
func TestDiffShadowPromoted(t *testing.T) {
	withShadow := func(c *policy.Config) {
		next := c.Rules[0].Limits[1]
		next.Name, next.Shadow = "next", true
		c.Rules[0].Limits = append(c.Rules[0].Limits, next)
	}
	before := edited(t, withShadow)
	d := diffOf(t, before, edited(t, func(c *policy.Config) { withShadow(c); c.Rules[0].Limits[2].Shadow = false }))
	if len(d.Limits) != 1 || d.Limits[0].Effect != policy.EffectEnforced {
		t.Errorf("%+v, want next newly enforced", d.Limits)
	}
	d = diffOf(t, before, edited(t, func(c *policy.Config) {
		withShadow(c)
		c.Rules[0].Limits[2].Shadow = false
		c.Rules[0].Limits = c.Rules[0].Limits[2:]
	}))
	if len(d.Limits) != 3 || d.Limits[0].Effect != policy.EffectAfresh || d.Limits[1].Effect != policy.EffectGone {
		t.Errorf("%+v, want next to start afresh, and two to be gone", d.Limits)
	}
}

func TestDiffSettings(t *testing.T) {
	for _, tt := range []struct {
		field   string
		edit    func(c *policy.Config)
		effect  policy.Effect
		restart bool
	}{
		{"store.redis", func(c *policy.Config) { c.Store.Redis = "redis://user:hunter2@other" }, policy.EffectAfresh, true},
		{"store.prefix", func(c *policy.Config) { c.Store.Prefix = "shop" }, policy.EffectAfresh, true},
		{"store.timeout", func(c *policy.Config) { c.Store.Timeout = time.Second }, "", true},
		{"failover.trip_after", func(c *policy.Config) { c.Failover.TripAfter = 9 }, "", true},
		{"failover.open_for", func(c *policy.Config) { c.Failover.OpenFor = 9 * time.Second }, "", true},
		{"failover.instances", func(c *policy.Config) { c.Failover.Instances = 9 }, "", true},
		{"failover.group", func(c *policy.Config) { c.Failover.Group = "shop" }, "", true},
		{"trusted_proxies", func(c *policy.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }, policy.EffectAfresh, false},
		{"ipv6_prefix", func(c *policy.Config) { c.IPv6Prefix = 56 }, policy.EffectAfresh, false},
		{"headers", func(c *policy.Config) { c.Headers = policy.HeadersX }, "", false},
		{"mode", func(c *policy.Config) { c.Mode = policy.ModeOff }, policy.EffectGone, false},
		{"mode", func(c *policy.Config) { c.Mode = policy.ModeShadow }, policy.EffectGone, false},
		{"mode", func(c *policy.Config) { c.Mode = policy.ModeLocal }, policy.EffectKeeps, false},
		{"match", func(c *policy.Config) { c.Rules[1].Match = "/basin" }, policy.EffectKeeps, false},
		{"on_outage", func(c *policy.Config) { c.Rules[1].OnOutage = policy.Deny }, "", false},
		{"denial", func(c *policy.Config) { c.Rules[1].Denial.Status = 503 }, "", false},
		{"cost", func(c *policy.Config) { c.Rules[1].Cost.Default = 2 }, policy.EffectKeeps, false},
		{"settle", func(c *policy.Config) { c.Rules[1].Settle, c.Rules[1].Cost.Max = "response:X-Cost", 9 }, policy.EffectKeeps, false},
		{"exempt", func(c *policy.Config) { c.Rules[1].Exempt = []string{"header:X-API-Key=hunter2"} }, policy.EffectKeeps, false},
		{"deny", func(c *policy.Config) { c.Rules[1].Deny = []string{"header:X-API-Key=hunter2"} }, policy.EffectKeeps, false},
	} {
		after := edited(t, tt.edit)
		before := mustConfig(t, shop())
		d := diffOf(t, before, after)
		if !slices.ContainsFunc(d.Settings, func(c policy.Change) bool {
			return c.Field == tt.field && c.Effect == tt.effect && c.Restart == tt.restart && len(c.Why) > 0
		}) || d.Restart() != tt.restart {
			t.Errorf("%s: %+v, want effect %q, restart %v", tt.field, d.Settings, tt.effect, tt.restart)
		}
		back := diffOf(t, after, before)
		if len(back.Settings) != len(d.Settings) {
			t.Errorf("%s: the way back changes %+v", tt.field, back.Settings)
		}
		if text := fmt.Sprint(d, back); strings.Contains(text, "hunter2") {
			t.Errorf("%s: a secret is shown: %s", tt.field, text)
		}
	}
}

func diffOf(t *testing.T, was, is *policy.Rules) policy.Difference {
	t.Helper()
	d, err := policy.Diff(was.Config(), is.Config())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Secrets are not read, and faults are told.
func TestDiffWithoutSecrets(t *testing.T) {
	secret := shop()
	secret.Rules[1].Exempt = []string{"header:X-API-Key=env:NO_SUCH_VARIABLE"}
	secret.Rules[1].Limits[0].Overrides = []policy.OverrideConfig{{Subject: "file:/no/such/file", Limit: algorithm.Limit{Count: 9, Period: time.Second, Burst: 9}}}
	d, err := policy.Diff(shop(), secret)
	if err != nil || len(d.Settings) != 1 || len(d.Limits) != 1 {
		t.Errorf("%+v, %v, want an exemption and an override", d, err)
	}
	faulty := shop()
	faulty.Rules[1].Match = ""
	for _, pair := range [][2]policy.Config{{faulty, shop()}, {shop(), faulty}} {
		if _, err := policy.Diff(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "rules[1].match") {
			t.Errorf("%v, want the fault of rules[1].match", err)
		}
	}
}

func mustConfig(t *testing.T, c policy.Config) *policy.Rules {
	t.Helper()
	rules, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func edited(t *testing.T, edit func(c *policy.Config)) *policy.Rules {
	t.Helper()
	c := shop()
	edit(&c)
	return mustConfig(t, c)
}
