package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Warnings names what c allows and its author may not expect, a sentence each; nil where there is nothing to say.
func (c Config) Warnings() []string {
	warnings := c.trustWarnings()
	bounded := slices.ContainsFunc(c.Rules, func(r RuleConfig) bool {
		return r.Match == always && len(r.Exempt) == 0 && !r.unverified()
	})
	for i := range c.Rules {
		r := &c.Rules[i]
		at := fmt.Sprintf("rules[%d]", i)
		if r.unverified() && !bounded {
			warnings = append(warnings, at+".limits: each is by a header, cookie or query, which nobody has verified: a client that invents a new value for each request is never refused; add a limit by ip or global")
		}
		warnings = append(warnings, c.costWarnings(at, r)...)
		warnings = append(warnings, listWarnings(at, r)...)
	}
	return warnings
}

// trustWarnings names prefixes under which every client chooses its own address.
func (c Config) trustWarnings() []string {
	var warnings []string
	for i, p := range c.TrustedProxies {
		if p.IsValid() && p.Bits() == 0 {
			warnings = append(warnings, fmt.Sprintf("trusted_proxies[%d]: %v trusts every peer: any client can choose the address it is limited by", i, p))
		}
	}
	return warnings
}

// unverified tells whether clients choose by themselves by what each limit that refuses counts them.
func (r *RuleConfig) unverified() bool {
	limits := 0
	for _, l := range r.Limits {
		if l.Shadow {
			continue
		}
		limits++
		if kind, _, _ := strings.Cut(l.Subject, ":"); kind != "header" && kind != "cookie" && kind != "query" {
			return false
		}
	}
	return limits > 0
}

// costWarnings names costs that nobody can send, and such as never pass.
func (c Config) costWarnings(at string, r *RuleConfig) []string {
	var warnings []string
	if r.Cost.Header != "" && len(c.TrustedProxies) == 0 {
		warnings = append(warnings, at+".cost.header: is read from trusted_proxies alone, and there are none: each request costs the default")
	}
	usual := cmp.Or(r.Cost.Default, 1)
	for i, l := range r.Limits {
		room := l.room()
		switch {
		case room < 1 || l.Shadow: // faulty, and reported; or it refuses nobody
		case usual > room:
			warnings = append(warnings, fmt.Sprintf("%s.limits[%d]: at most %d pass at one instant, and each request costs %d: none ever passes", at, i, room, usual))
		case r.Cost.Header != "" && r.Cost.Max > room:
			warnings = append(warnings, fmt.Sprintf("%s.limits[%d]: at most %d pass at one instant: a request that costs more, up to cost.max, %d, never passes", at, i, room, r.Cost.Max))
		}
	}
	return warnings
}

// room returns how many units pass at one instant, from a fresh state; 0 for an unknown algorithm.
func (l *LimitConfig) room() int64 {
	e, ok := find(l.Algorithm)
	if !ok {
		return 0
	}
	if !e.burst {
		return l.Limit.Count
	}
	return within(l.Limit, e, l.MaxDelay).Burst
}

// listWarnings names networks that are everybody's.
func listWarnings(at string, r *RuleConfig) []string {
	var warnings []string
	for _, l := range []struct {
		name, what string
		entries    []string
	}{{"exempt", "exempts", r.Exempt}, {"deny", "refuses", r.Deny}} {
		for i, text := range l.entries {
			if p, ok := parseNetwork(text); ok && p.Bits() == 0 {
				warnings = append(warnings, fmt.Sprintf("%s.%s[%d]: %v %s every client", at, l.name, i, p, l.what))
			}
		}
	}
	return warnings
}
