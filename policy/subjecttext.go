package policy

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// keyer makes the Key.Subject of a value that a request may have, or says what is wrong with the value, without
// repeating it: it may be a secret.
type keyer func(value string) (key, problem string)

// subject reads a subject's text; nil where that is faulty.
func (k *compiler) subject(path, text string, p *pattern, always bool) (Subject, keyer) {
	const want = "want ip, global, header:NAME, cookie:NAME, query:NAME or path:WILDCARD"
	kind, name, named := strings.Cut(text, ":")
	switch {
	case text == "":
		k.fault(path, "missing: %s", want)
	case text == "ip":
		return k.ip, k.addressKey
	case text == "global":
		return Global(), globalKey
	case !named || !slices.Contains([]string{"header", "cookie", "query", "path"}, kind):
		k.fault(path, "%q: %s", text, want)
	case strings.TrimSpace(name) == "":
		k.fault(path, "%q: want a name after %s:", text, kind)
	case kind == "query":
		return Query(name), hashKey(kind, name)
	case kind == "path":
		return k.wildcard(path, text, name, p, always)
	case !isToken(name):
		k.fault(path, "%q: %q can't name a %s: want a token such as X-API-Key", text, name, kind)
	case kind == "cookie":
		return Cookie(name), hashKey(kind, name)
	default:
		return Header(name), headerKey(name)
	}
	return nil, nil
}

func (k *compiler) wildcard(path, text, name string, p *pattern, always bool) (Subject, keyer) {
	switch {
	case always:
		k.fault(path, "%q: match %s has no wildcards", text, "always")
		return nil, nil
	case p == nil: // faulty, and reported; any wildcard may be meant
		return Global(), pathKey(name)
	case !slices.Contains(p.wildcards(), name):
		have := "it has none"
		if names := p.wildcards(); len(names) > 0 {
			have = "want one of " + strings.Join(names, ", ")
		}
		k.fault(path, "%q: %q is no wildcard of the rule's match: %s", text, name, have)
		return nil, nil
	}
	return p.subject(name), pathKey(name)
}

// noValue is the problem of a blank value: a request that has none falls back to its address.
const noValue = "blank: want a value"

func globalKey(value string) (key, problem string) {
	if value != "global" {
		return "", "want global: there is no other subject"
	}
	return value, ""
}

// addressKey takes an address, or the network that IPv6 addresses are counted by.
func (k *compiler) addressKey(value string) (key, problem string) {
	return addressKey(value, k.v6bits)
}

func addressKey(value string, v6bits int) (key, problem string) {
	if value == unknown {
		return unknown, ""
	}
	a, err := netip.ParseAddr(value)
	if p, prefixErr := netip.ParsePrefix(value); prefixErr == nil && p.Addr().Is6() && p.Bits() == v6bits {
		a, err = p.Addr(), nil
	}
	if err != nil {
		return "", fmt.Sprintf("want an address, or an IPv6 network of %d bits", v6bits)
	}
	return addressText(a.WithZone("").Unmap(), v6bits), ""
}

func hashKey(kind, name string) keyer {
	return func(value string) (key, problem string) {
		if key = hashed(kind, name, value); key == "" {
			problem = noValue
		}
		return key, problem
	}
}

func headerKey(name string) keyer {
	return func(value string) (key, problem string) {
		if key = headerSubject(http.CanonicalHeaderKey(name), value); key == "" {
			problem = noValue
		}
		return key, problem
	}
}

func pathKey(name string) keyer {
	return func(value string) (key, problem string) {
		if key = pathSubject(name, value); key == "" {
			problem = noValue
		}
		return key, problem
	}
}
