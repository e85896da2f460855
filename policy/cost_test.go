package policy_test

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/policy"
)

// costly is a rule whose cost is 2 to 100 by a header of a proxy in 10.0.0.0/8, and 5 otherwise.
func costly(t testing.TB, c policy.CostConfig, settle string) *policy.Rule {
	t.Helper()
	rules, err := policy.New(policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Rules:          []policy.RuleConfig{{Name: "a", Match: "/", Cost: c, Settle: settle, Limits: []policy.LimitConfig{perMinute("ip")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules.All()[0]
}

const proxy, stranger = "10.0.0.1:9", "192.0.2.1:9"

func TestCost(t *testing.T) {
	rule := costly(t, policy.CostConfig{Header: "x-cost", Default: 5, Min: 2, Max: 100}, "")
	for _, tt := range []struct {
		name, peer string
		lines      []string
		want       int64
	}{
		{"absent", proxy, nil, 5},
		{"number", proxy, []string{"7"}, 7},
		{"spaces", proxy, []string{" \t7 "}, 7},
		{"leading zeros", proxy, []string{"007"}, 7},
		{"the least", proxy, []string{"2"}, 2},
		{"below the least", proxy, []string{"1"}, 5},
		{"the most", proxy, []string{"100"}, 100},
		{"above the most", proxy, []string{"101"}, 100},
		{"beyond 64 bits", proxy, []string{strings.Repeat("9", 1000)}, 100},
		{"zero", proxy, []string{"0"}, 5},
		{"zeros", proxy, []string{"000"}, 5},
		{"negative", proxy, []string{"-1"}, 5},
		{"signed", proxy, []string{"+7"}, 5},
		{"exponent", proxy, []string{"1e30"}, 5},
		{"hexadecimal", proxy, []string{"0x1"}, 5},
		{"fraction", proxy, []string{"7.0"}, 5},
		{"underscore", proxy, []string{"1_0"}, 5},
		{"list", proxy, []string{"7, 8"}, 5},
		{"other digits", proxy, []string{"٧"}, 5},
		{"NaN", proxy, []string{"NaN"}, 5},
		{"blank", proxy, []string{"  "}, 5},
		{"twice", proxy, []string{"7", "7"}, 5},
		{"twice, one empty", proxy, []string{"", "7"}, 5},
		{"from a stranger", stranger, []string{"7"}, 5},
		{"from a stranger, forwarded", stranger, []string{"7"}, 5},
		{"from no address", "@", []string{"7"}, 5},
		{"from a mapped proxy", "[::ffff:10.0.0.1]:9", []string{"7"}, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := from(tt.peer, "X-Forwarded-For", "10.0.0.1")
			if tt.lines != nil {
				r.Header["X-Cost"] = tt.lines
			}
			if got := rule.Cost(r); got != tt.want {
				t.Errorf("%q from %s: %d, want %d", tt.lines, tt.peer, got, tt.want)
			}
		})
	}
}

func TestCostDefaults(t *testing.T) {
	header := []string{"X-Cost", "3"}
	for _, tt := range []struct {
		c    policy.CostConfig
		want int64
	}{
		{policy.CostConfig{}, 1},
		{policy.CostConfig{Default: 4}, 4},
		{policy.CostConfig{Header: "X-Cost", Max: 10}, 3},
		{policy.CostConfig{Header: "X-Cost", Max: 2}, 2},
		{policy.CostConfig{Header: "X-Cost", Default: 4, Max: 10}, 4}, // min is the default
		{policy.CostConfig{Header: "X-Cost", Default: 4, Min: 1, Max: 10}, 3},
	} {
		if got := costly(t, tt.c, "").Cost(from(proxy, header...)); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.c, got, tt.want)
		}
	}
	if got := (&policy.Rule{}).Cost(from(proxy, header...)); got != 1 {
		t.Errorf("the zero Rule: %d, want 1: nothing is free by accident", got)
	}
}

// Whatever the header says, and whoever sends it, a request costs from the least to the most, and a stranger's the default.
func TestCostIsBounded(t *testing.T) {
	rule := costly(t, policy.CostConfig{Header: "X-Cost", Default: 5, Min: 2, Max: 100}, "")
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringMatching(`[-+]?[0-9]{0,30}(e[0-9]+)?`))).Draw(t, "lines")
		r := from(rapid.SampledFrom([]string{proxy, stranger, ""}).Draw(t, "peer"))
		r.Header["X-Cost"] = lines
		got := rule.Cost(r)
		if got < 2 || got > 100 || r.RemoteAddr != proxy && got != 5 || len(lines) != 1 && got != 5 {
			t.Fatalf("%q from %s costs %d", lines, r.RemoteAddr, got)
		}
		if got != 5 && got != 100 && strconv.FormatInt(got, 10) != strings.TrimLeft(strings.Trim(lines[0], " \t"), "0") {
			t.Fatalf("%q costs %d", lines, got)
		}
	})
}

func TestActual(t *testing.T) {
	rule := costly(t, policy.CostConfig{Max: 100}, "response:x-actual-cost")
	for _, tt := range []struct {
		name string
		h    http.Header
		want int64
		ok   bool
	}{
		{"absent", http.Header{}, 0, false},
		{"number", http.Header{"X-Actual-Cost": {"7"}}, 7, true},
		{"nothing", http.Header{"X-Actual-Cost": {"0"}}, 0, true},
		{"above the most", http.Header{"X-Actual-Cost": {"1000"}}, 100, true},
		{"negative", http.Header{"X-Actual-Cost": {"-7"}}, 0, false},
		{"exponent", http.Header{"X-Actual-Cost": {"1e30"}}, 0, false},
		{"twice", http.Header{"X-Actual-Cost": {"7", "7"}}, 0, false},
		{"trailer", http.Header{"Trailer:X-Actual-Cost": {"7"}}, 7, true},
		{"trailer goes before", http.Header{"Trailer:X-Actual-Cost": {"7"}, "X-Actual-Cost": {"1"}}, 7, true},
		{"not canonical", http.Header{"x-actual-cost": {"7"}}, 0, false}, // cannot be set by Set or Add
		{"no header", nil, 0, false},
	} {
		if got, ok := rule.Actual(tt.h); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %d, %v, want %d, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	if _, ok := costly(t, policy.CostConfig{}, "").Actual(http.Header{"": {"7"}}); ok {
		t.Error("a rule without settle settles")
	}
}
