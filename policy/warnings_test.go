package policy_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

func TestWarnings(t *testing.T) {
	by := func(subjects ...string) []policy.LimitConfig {
		var limits []policy.LimitConfig
		for _, s := range subjects {
			limits = append(limits, perMinute(s)) // at most 5 at one instant
		}
		return limits
	}
	shadow := perMinute("ip")
	shadow.Shadow = true
	queue := policy.LimitConfig{Algorithm: "leaky", Limit: algorithm.Limit{Count: 1, Period: time.Second}, Subject: "ip", MaxDelay: 2 * time.Second}
	proxies := func(texts ...string) (list []netip.Prefix) {
		for _, s := range texts {
			list = append(list, netip.MustParsePrefix(s))
		}
		return list
	}
	const unverified = "rules[0].limits: each is by a header, cookie or query"
	for name, tt := range map[string]struct {
		config policy.Config
		want   []string // how each begins
	}{
		"nothing":      {policy.Config{}, nil},
		"no limits":    {policy.Config{Rules: []policy.RuleConfig{{Name: "a"}}}, nil},
		"on_outage":    {policy.Config{Rules: []policy.RuleConfig{{OnOutage: policy.Allow}, {OnOutage: policy.Deny}}}, nil},
		"trusts all":   {policy.Config{TrustedProxies: proxies("10.0.0.0/8", "::/0")}, []string{"trusted_proxies[1]: ::/0 trusts every peer"}},
		"by ip":        {policy.Config{Rules: []policy.RuleConfig{{Limits: by("header:X-Key", "ip")}}}, nil},
		"by all":       {policy.Config{Rules: []policy.RuleConfig{{Limits: by("global", "query:key")}}}, nil},
		"by header":    {policy.Config{Rules: []policy.RuleConfig{{Limits: by("header:X-Key")}}}, []string{unverified}},
		"by any":       {policy.Config{Rules: []policy.RuleConfig{{Limits: by("header:X-Key", "cookie:sid", "query:key")}}}, []string{unverified}},
		"ip in shadow": {policy.Config{Rules: []policy.RuleConfig{{Limits: append(by("header:X-Key"), shadow)}}}, []string{unverified}},
		"always by ip": {policy.Config{Rules: []policy.RuleConfig{{Limits: by("header:X-Key")}, {Match: "always", Limits: by("ip")}}}, nil},
		"always by key": {policy.Config{Rules: []policy.RuleConfig{{Limits: by("header:X-Key")}, {Match: "always", Limits: by("header:X-Key")}}},
			[]string{unverified, "rules[1].limits: each is by a header"}},
		"always, with exemptions": {policy.Config{Rules: []policy.RuleConfig{{Limits: by("header:X-Key")}, {Match: "always", Exempt: []string{"10.0.0.0/8"}, Limits: by("ip")}}},
			[]string{unverified}},
		"cost from nobody": {policy.Config{Rules: []policy.RuleConfig{{Cost: policy.CostConfig{Header: "X-Cost", Max: 5}, Limits: by("ip")}}},
			[]string{"rules[0].cost.header: is read from trusted_proxies alone, and there are none"}},
		"cost above burst": {policy.Config{TrustedProxies: proxies("10.0.0.0/8"), Rules: []policy.RuleConfig{{Cost: policy.CostConfig{Header: "X-Cost", Max: 6}, Limits: by("ip")}}},
			[]string{"rules[0].limits[0]: at most 5 pass at one instant: a request that costs more, up to cost.max, 6, never passes"}},
		"default above burst": {policy.Config{Rules: []policy.RuleConfig{{Cost: policy.CostConfig{Default: 6}, Limits: by("ip")}}},
			[]string{"rules[0].limits[0]: at most 5 pass at one instant, and each request costs 6: none ever passes"}},
		"default above queue": {policy.Config{Rules: []policy.RuleConfig{{Cost: policy.CostConfig{Default: 4}, Limits: []policy.LimitConfig{queue}}}},
			[]string{"rules[0].limits[0]: at most 3 pass at one instant"}},
		"lists of all": {policy.Config{Rules: []policy.RuleConfig{{Exempt: []string{"10.0.0.0/8", "0.0.0.0/0"}, Deny: []string{"::/0"}, Limits: by("ip")}}},
			[]string{"rules[0].exempt[1]: 0.0.0.0/0 exempts every client", "rules[0].deny[0]: ::/0 refuses every client"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.config.Warnings()
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q...", got[i], want)
				}
			}
		})
	}
}
