package policy

import (
	"net/http"
	"strings"
)

// tree finds the most specific pattern of a request: by host, then method, then segment by segment. That order needs
// no comparing, because patterns of which neither is more specific are refused when the rules are made. It is the
// routing of net/http without its redirects: whatever would be redirected to a cleaned path is matched by that path.
type tree struct {
	hosts map[string]branch
	any   branch
}

// branch holds the patterns of one host by method; "" is any method.
type branch map[string]*node

type node struct {
	literals map[string]*node
	wild     *node
	multi    []*Rule // rules whose pattern takes all that is left
	rules    []*Rule // rules whose pattern ends here
}

// add enters a pattern, and the rules that hold where it is the most specific.
func (t *tree) add(p *pattern, rules []*Rule) {
	if t.any == nil {
		t.any, t.hosts = branch{}, map[string]branch{}
	}
	b := t.any
	if p.host != "" {
		if b = t.hosts[p.host]; b == nil {
			b = branch{}
			t.hosts[p.host] = b
		}
	}
	n := child(b, p.method)
	for _, s := range p.segments {
		switch {
		case s.multi:
			n.multi = rules
			return
		case s.wild:
			if n.wild == nil {
				n.wild = &node{}
			}
			n = n.wild
		default:
			if n.literals == nil {
				n.literals = map[string]*node{}
			}
			n = child(n.literals, s.text)
		}
	}
	n.rules = rules
}

func child(m map[string]*node, name string) *node {
	n := m[name]
	if n == nil {
		n = &node{}
		m[name] = n
	}
	return n
}

// match returns the rules entered with the most specific pattern, or nil.
func (t *tree) match(r *http.Request) []*Rule {
	path := requestPath(r)
	if len(t.hosts) > 0 {
		if rules := t.hosts[strings.ToLower(bareHost(r.Host))].match(r.Method, path); rules != nil {
			return rules
		}
	}
	return t.any.match(r.Method, path)
}

func (b branch) match(method, path string) []*Rule {
	if method == "" {
		method = http.MethodGet // as net/http reads it
	}
	if rules := b[method].match(path); rules != nil {
		return rules
	}
	if method == http.MethodHead {
		if rules := b[http.MethodGet].match(path); rules != nil {
			return rules
		}
	}
	return b[""].match(path)
}

func (n *node) match(path string) []*Rule {
	if n == nil {
		return nil
	}
	if path == "" {
		return n.rules
	}
	segment, rest := firstSegment(path)
	if rules := n.literals[segment].match(rest); rules != nil {
		return rules
	}
	if segment != "/" {
		if rules := n.wild.match(rest); rules != nil {
			return rules
		}
	}
	return n.multi
}
