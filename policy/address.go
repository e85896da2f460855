package policy

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// defaultV6Bits is what one customer is usually given: counting single addresses would count nobody twice.
const defaultV6Bits = 64

// unknown is the subject of every request whose peer has no address, such as one from a unix socket: they share it.
const unknown = "unknown"

// IP returns the subject of the client's address: "192.0.2.1", or the /64 around an IPv6 address, such as
// "2001:db8:1:2::/64". An IPv4-mapped address is its IPv4 address; ports and zones are dropped. It is never "": all
// requests whose peer has no address, such as those from a unix socket, are "unknown" together.
//
// The client is the peer (RemoteAddr), unless that lies in trusted: then X-Forwarded-For is walked from its right end
// to the first address that is not trusted, which is the client. What stands left of that anyone may have written, and
// it is not read. An element that is no address ends the walk at the trusted address before it. With no trusted
// prefixes no header is read.
func IP(trusted ...netip.Prefix) Subject { return IPPrefix(defaultV6Bits, trusted...) }

// IPPrefix is IP with v6bits of an IPv6 address as one client, 1 to 128; anything else counts as 64.
func IPPrefix(v6bits int, trusted ...netip.Prefix) Subject {
	if v6bits < 1 || v6bits > 128 {
		v6bits = defaultV6Bits
	}
	peers := newPeers(trusted)
	return func(r *http.Request) string {
		a, ok := peers.client(r)
		if !ok {
			return unknown
		}
		return addressText(a, v6bits)
	}
}

// addressText is the subject of an address: itself, or the network around an IPv6 one.
func addressText(a netip.Addr, v6bits int) string {
	if a.Is4() {
		return a.String()
	}
	p, err := a.Prefix(v6bits)
	if err != nil {
		return unknown
	}
	return p.String()
}

// unmapPrefix turns a prefix of IPv4-mapped addresses into that of the IPv4 addresses, which is how peers arrive.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// peers are the prefixes whose word about other addresses is believed.
type peers []netip.Prefix

// newPeers copies prefixes, in the form in which addresses arrive.
func newPeers(prefixes []netip.Prefix) peers {
	ps := peers(slices.Clone(prefixes))
	for i, p := range ps {
		ps[i] = unmapPrefix(p)
	}
	return ps
}

// sent tells whether the request came straight from one of them.
func (ps peers) sent(r *http.Request) bool {
	if len(ps) == 0 {
		return false
	}
	a, ok := parseAddr(r.RemoteAddr)
	return ok && ps.trust(a)
}

// hops bounds the walk: longer chains than this are not made by proxies.
const hops = 64

// client returns the client's address, or false where not even the peer has one.
func (ps peers) client(r *http.Request) (netip.Addr, bool) {
	last, ok := parseAddr(r.RemoteAddr)
	if !ok || !ps.trust(last) {
		return last, ok
	}
	lines, walked := r.Header["X-Forwarded-For"], 0
	for i := len(lines) - 1; i >= 0; i-- {
		rest, more := lines[i], true
		for more {
			var element string
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, element = rest[:comma], rest[comma+1:]
			} else {
				element, more = rest, false
			}
			a, ok := parseAddr(strings.Trim(element, " \t"))
			if walked++; !ok || walked > hops {
				return last, true
			}
			if !ps.trust(a) {
				return a, true
			}
			last = a
		}
	}
	return last, true
}

func (ps peers) trust(a netip.Addr) bool {
	for _, p := range ps {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// parseAddr reads an address with or without port and brackets, and drops its zone and its mapping of IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	const longest = 128 // an IPv6 address, a zone and a port
	if len(s) > longest {
		return netip.Addr{}, false
	}
	host, port := s, ""
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok = strings.Cut(inner, "]")
		if !ok {
			return netip.Addr{}, false
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 && i == strings.LastIndexByte(s, ':') {
		host, port = s[:i], s[i:]
	}
	if digits, ok := strings.CutPrefix(port, ":"); port != "" && (!ok || strings.Trim(digits, "0123456789") != "") {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.WithZone("").Unmap(), true
}
