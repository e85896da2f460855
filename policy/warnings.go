package policy

import (
	"cmp"
	"fmt"
)

// Warnings names what c allows and its author may not expect, a sentence each; nil where there is nothing to say.
func (c Config) Warnings() []string {
	return append(c.outageWarnings(), c.trustWarnings()...)
}

// outageWarnings names the rules that ask for a fallback, while there is none but to refuse.
func (c Config) outageWarnings() []string {
	var warnings []string
	for i, r := range c.Rules {
		if c.Store.Redis != "" && r.OnOutage != Deny {
			warnings = append(warnings, fmt.Sprintf("rules[%d].on_outage: %q of rule %q: only %q works yet: while Redis is away its requests are refused",
				i, cmp.Or(r.OnOutage, Local), r.Name, Deny))
		}
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
