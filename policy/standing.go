package policy

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Standing says how a rule takes a request before any limit is asked.
type Standing uint8

const (
	Counted Standing = iota // its limits hold
	Exempt                  // the rule's exempt lists it: this rule does not limit it, others may
	Denied                  // the rule's deny lists it: it is refused
)

// String returns counted, exempt or denied.
func (s Standing) String() string {
	switch s {
	case Counted:
		return "counted"
	case Exempt:
		return "exempt"
	case Denied:
		return "denied"
	}
	return "unknown"
}

// Standing returns how the rule takes req. Deny goes before exempt.
func (r *Rule) Standing(req *http.Request) Standing {
	switch {
	case r.deny == nil && r.exempt == nil:
		return Counted
	case r.deny.has(req):
		return Denied
	case r.exempt.has(req):
		return Exempt
	}
	return Counted
}

// list is a compiled Exempt or Deny. It holds hashes of secrets and not the secrets.
type list struct {
	peers    peers
	networks map[netip.Prefix]bool
	bits     []int // lengths of the networks
	values   []values
}

// values are the listed values of one header, cookie, query parameter or wildcard, as keys.
type values struct {
	name    string // such as header:X-API-Key
	subject Subject
	keys    map[string]bool
}

func (l *list) has(req *http.Request) bool {
	if l == nil {
		return false
	}
	if len(l.networks) > 0 {
		if a, ok := l.peers.client(req); ok && l.hasAddr(a) {
			return true
		}
	}
	for i := range l.values {
		v := &l.values[i]
		if key := v.subject(req); key != "" && v.keys[key] {
			return true
		}
	}
	return false
}

// hasAddr looks up one network of each length: lists of thousands stay quick.
func (l *list) hasAddr(a netip.Addr) bool {
	for _, bits := range l.bits {
		if p, err := a.Prefix(bits); err == nil && l.networks[p] { // an IPv4 address has none of more than 32 bits
			return true
		}
	}
	return false
}

// list compiles the entries of an exempt or deny; nil if there are none. No message holds an entry, which may be a
// secret.
func (k *compiler) list(path string, entries []string, p *pattern, always bool) *list {
	if len(entries) == 0 {
		return nil
	}
	l := &list{peers: k.peers, networks: map[netip.Prefix]bool{}}
	for i, text := range entries {
		k.listed(fmt.Sprintf("%s[%d]", path, i), l, text, p, always)
	}
	return l
}

func (k *compiler) listed(path string, l *list, text string, p *pattern, always bool) {
	kind, rest, _ := strings.Cut(text, ":")
	if !slices.Contains([]string{"header", "cookie", "query", "path"}, kind) {
		network, ok := parseNetwork(text)
		if !ok {
			k.fault(path, "want an address, a network such as 10.0.0.0/8, or header:NAME=VALUE, cookie:NAME=VALUE, query:NAME=VALUE or path:WILDCARD=VALUE")
			return
		}
		l.add(network)
		return
	}
	name, text, ok := strings.Cut(rest, "=")
	if !ok || strings.TrimSpace(name) == "" {
		k.fault(path, "want %s:NAME=VALUE", kind)
		return
	}
	subject, key := k.subject(path, kind+":"+name, p, always)
	value, ok := k.reveal(path, text)
	if !ok || subject == nil {
		return
	}
	hash, problem := key(value)
	if problem != "" {
		k.fault(path, "%s", problem)
		return
	}
	l.addValue(kind+":"+name, subject, hash)
}

func (l *list) add(network netip.Prefix) {
	if !slices.Contains(l.bits, network.Bits()) {
		l.bits = append(l.bits, network.Bits())
	}
	l.networks[network] = true
}

func (l *list) addValue(name string, subject Subject, key string) {
	for i := range l.values {
		if l.values[i].name == name {
			l.values[i].keys[key] = true
			return
		}
	}
	l.values = append(l.values, values{name: name, subject: subject, keys: map[string]bool{key: true}})
}

// parseNetwork reads a network or a single address, without a zone.
func parseNetwork(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return unmapPrefix(p).Masked(), true
}
