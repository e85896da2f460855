package policy

import "fmt"

// Warnings names what c allows and its author may not expect, a sentence each; nil where there is nothing to say.
func (c Config) Warnings() []string {
	return c.trustWarnings()
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
