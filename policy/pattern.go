package policy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pattern is a net/http pattern: [METHOD ][HOST]/PATH.
type pattern struct {
	method   string // "": any
	host     string // "": any
	segments []segment
}

// segment is a literal, decoded; "/" is the end that {$} asks for. Or it is a wildcard, whose name may be "".
type segment struct {
	text  string
	wild  bool
	multi bool // takes all that is left: {name...}, or a trailing slash
}

// patterns refuses what can't be parsed, what can never match, and what conflicts with a pattern before it.
type patterns struct {
	mux   *http.ServeMux // its judgement on syntax and conflicts, not its matching, which redirects
	rules map[string]int // pattern in the mux's spelling -> rule
}

// add parses a pattern of a rule, given by its number. The error has no prefix.
func (ps *patterns) add(text string, rule int) (*pattern, error) {
	method, host, rest := split(text)
	spelled := text
	if rest != "" {
		upper := strings.ToUpper(method)
		switch {
		case method != upper && slices.Contains(methods(), upper):
			return nil, fmt.Errorf("pattern %q: method %q never arrives, methods are upper case: want %q", text, method, upper)
		case host != bareHost(host):
			return nil, fmt.Errorf("pattern %q: host %q never matches: want it without port, brackets or end dot, as in %q", text, host, bareHost(host))
		case !isASCII(host):
			return nil, fmt.Errorf("pattern %q: host %q never matches, hosts arrive in ASCII: want its xn-- form", text, host)
		case rest != cleanPath(rest):
			return nil, fmt.Errorf("pattern %q: path %q never matches, paths are cleaned first: want %q", text, rest, cleanPath(rest))
		}
		host = strings.ToLower(host)
		if spelled = host + rest; method != "" {
			spelled = method + " " + spelled
		}
	}
	if err := handle(ps.mux, spelled); err != nil {
		return nil, ps.explain(text, err)
	}
	ps.rules[spelled] = rule
	return parse(method, host, rest), nil
}

func methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}
}

// split cuts a pattern as net/http does. path is "" where there is no slash.
func split(text string) (method, host, path string) {
	rest := text
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		method, rest = text[:i], strings.TrimLeft(text[i+1:], " \t")
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	return method, host, path
}

// handle registers a pattern and returns as an error what the mux panics with.
func handle(mux *http.ServeMux, text string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	mux.Handle(text, http.NotFoundHandler())
	return nil
}

// explain words an error of the mux for someone who writes rules: without the places where code registered patterns.
func (ps *patterns) explain(text string, err error) error {
	msg := err.Error()
	if _, after, ok := strings.Cut(msg, " conflicts with pattern "); ok {
		msg = "another pattern"
		if quoted, err := strconv.QuotedPrefix(after); err == nil {
			if other, err := strconv.Unquote(quoted); err == nil {
				msg = fmt.Sprintf("rules[%d].match %s", ps.rules[other], quoted)
			}
		}
		_, why, _ := strings.Cut(after, "\n")
		why = strings.Join(strings.FieldsFunc(why, func(r rune) bool { return r == '\n' || r == '\t' }), " ")
		return fmt.Errorf("pattern %q conflicts with %s: %s", text, msg, why)
	}
	if _, after, ok := strings.Cut(msg, "at offset "); ok {
		return fmt.Errorf("pattern %q: at offset %s", text, after)
	}
	return errors.New("pattern " + strconv.Quote(text) + ": " + strings.TrimPrefix(msg, "http: "))
}

// parse reads what the mux has accepted.
func parse(method, host, rest string) *pattern {
	p := &pattern{method: method, host: host}
	for rest != "" {
		rest = rest[1:] // the slash
		if rest == "" {
			p.segments = append(p.segments, segment{wild: true, multi: true})
			break
		}
		text := rest
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			text, rest = rest[:i], rest[i:]
		} else {
			rest = ""
		}
		name, wild := strings.CutPrefix(text, "{")
		name = strings.TrimSuffix(name, "}")
		switch {
		case !wild:
			p.segments = append(p.segments, segment{text: unescape(text)})
		case name == "$":
			p.segments = append(p.segments, segment{text: "/"})
		default:
			name, multi := strings.CutSuffix(name, "...")
			p.segments = append(p.segments, segment{text: name, wild: true, multi: multi})
		}
	}
	return p
}

// wildcards returns the names that path: subjects may use.
func (p *pattern) wildcards() []string {
	var names []string
	for _, s := range p.segments {
		if s.wild && s.text != "" {
			names = append(names, s.text)
		}
	}
	return names
}

// subject returns the subject of a wildcard's value in the requests that p matches.
func (p *pattern) subject(wildcard string) Subject {
	return func(r *http.Request) string { return pathSubject(wildcard, p.value(requestPath(r), wildcard)) }
}

// value returns what a wildcard stands for in path, or "" where p does not match up to there.
func (p *pattern) value(path, wildcard string) string {
	for _, s := range p.segments {
		if path == "" {
			return ""
		}
		if s.multi {
			if s.text == wildcard {
				return unescape(path[1:])
			}
			return ""
		}
		var text string
		text, path = firstSegment(path)
		switch {
		case s.wild && s.text == wildcard:
			return text
		case !s.wild && s.text != text:
			return ""
		}
	}
	return ""
}

// requestPath returns the path to match, as ServeMux does: cleaned, still escaped, so that an escaped slash does not
// part segments. A CONNECT's path is as it came: ServeMux does not clean it either, and serves CONNECT /api/../x by /api/.
func requestPath(r *http.Request) string {
	if r.URL == nil {
		return "/"
	}
	p := r.URL.EscapedPath()
	if r.Method == http.MethodConnect && strings.HasPrefix(p, "/") {
		return p
	}
	return cleanPath(p)
}

// cleanPath resolves . and .. and double slashes and keeps a trailing slash. The result begins with a slash.
func cleanPath(p string) string {
	if p == "" {
		return "/"
	}
	if p[0] != '/' {
		p = "/" + p
	}
	clean := path.Clean(p)
	if p[len(p)-1] != '/' || clean == "/" {
		return clean
	}
	if len(p) == len(clean)+1 && strings.HasPrefix(p, clean) {
		return p
	}
	return clean + "/"
}

// firstSegment cuts the first segment, decoded, from a path that begins with a slash. A trailing slash is a segment.
func firstSegment(path string) (segment, rest string) {
	if path == "/" {
		return "/", ""
	}
	path = path[1:]
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return unescape(path[:i]), path[i:]
	}
	return unescape(path), ""
}

// unescape decodes a part of a path, or returns it as it is where that fails.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// bareHost drops a port, brackets and the dot of a rooted name.
func bareHost(host string) string {
	if strings.Contains(host, ":") {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}
