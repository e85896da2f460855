package gateway

import (
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/sluice-go/sluice/policy"
)

// proxies tells which peers may ask: the trusted_proxies of the rules as they are. The zero proxies are ready.
type proxies struct {
	last atomic.Pointer[trusted]
}

// trusted are the prefixes of one set of rules, kept since rules change seldom.
type trusted struct {
	rules    *policy.Rules
	prefixes []netip.Prefix
}

// sent tells whether r came straight from a trusted proxy.
func (p *proxies) sent(rules *policy.Rules, r *http.Request) bool {
	t := p.last.Load()
	if t == nil || t.rules != rules {
		t = &trusted{rules: rules}
		for _, prefix := range rules.Config().TrustedProxies {
			t.prefixes = append(t.prefixes, unmapped(prefix))
		}
		p.last.Store(t)
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	a := peer.Addr().WithZone("").Unmap()
	for _, prefix := range t.prefixes {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// unmapped turns a prefix of IPv4-mapped addresses into that of the IPv4 addresses.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
