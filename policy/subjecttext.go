package policy

import (
	"slices"
	"strings"
)

// subject reads a subject's text; nil where that is faulty.
func (k *compiler) subject(path, text string, p *pattern, always bool) Subject {
	const want = "want ip, global, header:NAME, cookie:NAME, query:NAME or path:WILDCARD"
	kind, name, named := strings.Cut(text, ":")
	switch {
	case text == "":
		k.fault(path, "missing: %s", want)
	case text == "ip":
		return k.ip
	case text == "global":
		return Global()
	case !named || !slices.Contains([]string{"header", "cookie", "query", "path"}, kind):
		k.fault(path, "%q: %s", text, want)
	case strings.TrimSpace(name) == "":
		k.fault(path, "%q: want a name after %s:", text, kind)
	case kind == "query":
		return Query(name)
	case kind == "path":
		return k.wildcard(path, text, name, p, always)
	case !isToken(name):
		k.fault(path, "%q: %q can't name a %s: want a token such as X-API-Key", text, name, kind)
	case kind == "cookie":
		return Cookie(name)
	default:
		return Header(name)
	}
	return nil
}

func (k *compiler) wildcard(path, text, name string, p *pattern, always bool) Subject {
	switch {
	case always:
		k.fault(path, "%q: match %s has no wildcards", text, "always")
		return nil
	case p == nil: // faulty, and reported; any wildcard may be meant
		return Global()
	case !slices.Contains(p.wildcards(), name):
		have := "it has none"
		if names := p.wildcards(); len(names) > 0 {
			have = "want one of " + strings.Join(names, ", ")
		}
		k.fault(path, "%q: %q is no wildcard of the rule's match: %s", text, name, have)
		return nil
	}
	return p.subject(name)
}
