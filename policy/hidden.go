package policy

import (
	"net/http"
	"net/url"
	"strings"
)

// Hiding is a rule that keeps requests from broader rules: for a request that several patterns match, only the rule
// with the most specific one holds, besides those with "always".
type Hiding struct {
	Rule  string   // name of the more specific rule
	Hides []string // names of the broader ones, in the order of the Config
}

// Hidden returns every rule that hides broader ones, in the order of the Config. Rules with a faulty pattern are left
// out.
func (c Config) Hidden() []Hiding {
	ps := patterns{mux: http.NewServeMux(), rules: map[string]int{}}
	parsed := make([]*pattern, len(c.Rules))
	for i := range c.Rules {
		if c.Rules[i].Match == always {
			continue
		}
		if p, err := ps.add(c.Rules[i].Match, i); err == nil {
			parsed[i] = p
		}
	}
	var found []Hiding
	for i, p := range parsed {
		h := Hiding{Rule: c.Rules[i].Name}
		for j, q := range parsed {
			if i != j && p != nil && q != nil && p.hides(q) {
				h.Hides = append(h.Hides, c.Rules[j].Name)
			}
		}
		if h.Hides != nil {
			found = append(found, h)
		}
	}
	return found
}

// hides tells whether a request that both patterns match goes to p. It asks the matching itself, with a request that
// both match.
func (p *pattern) hides(q *pattern) bool {
	method, ok := commonMethod(p, q)
	if !ok {
		return false
	}
	host := p.host
	switch {
	case host == "":
		host = q.host
	case q.host != "" && q.host != host:
		return false
	}
	path, ok := commonPath(p.segments, q.segments)
	if !ok {
		return false
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return false
	}
	rule, t := &Rule{}, tree{}
	t.add(p, []*Rule{rule})
	t.add(q, []*Rule{{}})
	won := t.match(&http.Request{Method: method, Host: host, URL: u})
	return len(won) == 1 && won[0] == rule
}

// commonMethod is a method of which both patterns take requests.
func commonMethod(p, q *pattern) (string, bool) {
	switch {
	case p.method == q.method && p.method != "":
		return p.method, true
	case p.method == "" && q.method == "":
		return http.MethodGet, true
	case p.method == "":
		return q.method, true
	case q.method == "":
		return p.method, true
	case p.method == http.MethodHead && q.method == http.MethodGet, p.method == http.MethodGet && q.method == http.MethodHead:
		return http.MethodHead, true
	}
	return "", false
}

// commonPath is a path, escaped, that both patterns match: the literals of either, and x where both have a wildcard.
func commonPath(p, q []segment) (string, bool) {
	var b strings.Builder
	for {
		switch {
		case len(p) == 0 && len(q) == 0:
			return b.String(), true
		case len(p) == 0 || len(q) == 0:
			return "", false
		case p[0].multi:
			fill(&b, q)
			return b.String(), true
		case q[0].multi:
			fill(&b, p)
			return b.String(), true
		}
		text, other := p[0], q[0]
		if text.wild {
			text, other = other, text
		}
		if !other.wild && other.text != text.text || other.wild && !text.wild && text.text == "/" {
			return "", false
		}
		b.WriteString("/" + spell(text))
		p, q = p[1:], q[1:]
	}
}

// fill writes a path that the segments match.
func fill(b *strings.Builder, segments []segment) {
	for _, s := range segments {
		b.WriteByte('/')
		if !s.multi {
			b.WriteString(spell(s))
		}
	}
}

// spell is a text that the segment matches; that of the end of a path is the slash before it.
func spell(s segment) string {
	switch {
	case s.wild:
		return "x"
	case s.text == "/":
		return ""
	}
	return url.PathEscape(s.text)
}
