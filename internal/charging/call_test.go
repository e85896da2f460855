package charging_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/charging"
	"github.com/sluice-go/sluice/policy"
)

func TestAdd(t *testing.T) {
	rules := newRules(t,
		policy.RuleConfig{Name: "plain", Match: "/", Limits: []policy.LimitConfig{window("", 9, "ip")}},
		policy.RuleConfig{Name: "costly", Match: "always", Cost: policy.CostConfig{Default: 3}, Limits: []policy.LimitConfig{window("", 9, "ip")}},
		policy.RuleConfig{Name: "exempts", Match: "always", Exempt: []string{"192.0.2.1", "192.0.2.3"}, Limits: []policy.LimitConfig{window("", 9, "ip")}},
		policy.RuleConfig{Name: "denies", Match: "always", Deny: []string{"192.0.2.2", "192.0.2.3"}, Limits: []policy.LimitConfig{window("", 9, "ip")}},
		policy.RuleConfig{Name: "denies-too", Match: "always", Deny: []string{"192.0.2.2"}, Limits: []policy.LimitConfig{window("", 9, "ip")}},
	)
	for addr, want := range map[string]struct {
		parts  string // by cost
		denied string
	}{
		"192.0.2.9": {"[plain:1 costly:3 exempts:1 denies:1 denies-too:1]", ""},
		"192.0.2.1": {"[plain:1 costly:3 denies:1 denies-too:1]", ""},
		"192.0.2.2": {"[plain:1 costly:3 exempts:1]", "denies"},
		"192.0.2.3": {"[plain:1 costly:3 denies-too:1]", "denies"},
	} {
		before := charging.Part{Rule: rules.All()[0]}
		r := from(addr, "/")
		call, denied := charging.Call{before}.Add(rules.Match(r), r)
		var parts []string
		for _, p := range call[1:] {
			parts = append(parts, fmt.Sprintf("%s:%d", p.Rule.Name, p.Cost))
			if p.Request != r {
				t.Errorf("%s: %s is of another request", addr, p.Rule.Name)
			}
		}
		if got := fmt.Sprint(parts); got != want.parts || call[0] != before {
			t.Errorf("%s: %s, want %s behind what there was", addr, got, want.parts)
		}
		if (denied == nil) != (want.denied == "") || denied != nil && denied.Name != want.denied {
			t.Errorf("%s: denied by %v, want %q", addr, denied, want.denied)
		}
	}
}

// The strictest on_outage of all requests decides them all; rules of shadows alone have no say beside others.
func TestStore(t *testing.T) {
	rule := func(name string, o policy.OnOutage, l policy.LimitConfig) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: "/" + name, OnOutage: o, Limits: []policy.LimitConfig{l}}
	}
	rules := newRules(t, rule("deny", policy.Deny, window("", 9, "ip")), rule("local", policy.Local, window("", 9, "ip")),
		rule("allow", policy.Allow, window("", 9, "ip")), rule("shadow", policy.Deny, shadow(window("", 9, "ip"))))
	stores := map[policy.OnOutage]sluice.Store{policy.Deny: newStore(), policy.Local: newStore(), policy.Allow: newStore()}
	for _, tt := range []struct {
		paths []string
		want  policy.OnOutage
	}{
		{[]string{"/allow"}, policy.Allow}, {[]string{"/allow", "/local"}, policy.Local}, {[]string{"/local", "/deny", "/allow"}, policy.Deny},
		{[]string{"/shadow", "/allow"}, policy.Allow}, {[]string{"/shadow"}, policy.Deny},
	} {
		var call charging.Call
		for _, path := range tt.paths {
			r := from("192.0.2.1", path)
			call, _ = call.Add(rules.Match(r), r)
		}
		got, err := call.Store(stores)
		if err != nil || got != stores[tt.want] {
			t.Errorf("%v: another store than that of %s, %v", tt.paths, tt.want, err)
		}
		less := map[policy.OnOutage]sluice.Store{}
		for o, s := range stores {
			if o != tt.want {
				less[o] = s
			}
		}
		text := fmt.Sprintf("rule %s: no store for on_outage %s", tt.paths[0][1:], tt.want)
		if got, err := call.Store(less); got != nil || err == nil || err.Error() != text {
			t.Errorf("%v: %v, %v, want %s", tt.paths, got, err, text)
		}
	}
}

// What a call is made of stays on its maker's stack.
func TestCallAllocatesNothing(t *testing.T) {
	var configs []policy.RuleConfig
	for i := range 8 {
		configs = append(configs, policy.RuleConfig{Name: fmt.Sprint("r", i), Match: "always", Limits: []policy.LimitConfig{shadow(window("", 9, "global"))}})
	}
	rules := newRules(t, configs...)
	stores := map[policy.OnOutage]sluice.Store{policy.Local: sluice.Store(newStore())}
	r := from("192.0.2.1", "/")
	matched := rules.Match(r)
	ctx := t.Context()
	if got := testing.AllocsPerRun(100, func() {
		var few [8]charging.Part
		call, _ := charging.Call(few[:0]).Add(matched, r)
		store, err := call.Store(stores)
		if err != nil || len(call) != len(few) {
			t.Fatal(len(call), err)
		}
		taken, err := call.Take(ctx, store)
		if err != nil || !taken.Allowed {
			t.Fatal(taken, err)
		}
	}); got > 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
