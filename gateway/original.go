package gateway

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/policy"
)

// The fields in which proxies name the request that they ask about, as net/http spells them.
const (
	originalMethod  = "X-Original-Method"
	originalURI     = "X-Original-Uri"
	originalHost    = "X-Original-Host"
	forwardedMethod = "X-Forwarded-Method"
	forwardedURI    = "X-Forwarded-Uri"
	forwardedHost   = "X-Forwarded-Host"
)

// originalOf returns the request that a proxy asks about in r: with its method, URI and host, r's peer and fields, and
// no body. Where there is none it returns the status to answer with, and why. That is 403 wherever a client may be the
// cause, so that no client can turn a check into a failure that a proxy lets pass.
func originalOf(r *http.Request) (original *http.Request, status int, problem string) {
	h := r.Header
	methods, uris, hosts, read := h[originalMethod], h[originalURI], h[originalHost], asNginx
	switch {
	case len(uris) > 0 && (len(h[forwardedURI]) > 0 || len(h[forwardedMethod]) > 0),
		len(h[forwardedURI]) > 0 && (len(methods) > 0 || len(hosts) > 0):
		return nil, http.StatusForbidden, "X-Original-* and X-Forwarded-* both name the request: one of them is the client's"
	case len(uris) == 0:
		methods, uris, hosts, read = h[forwardedMethod], h[forwardedURI], h[forwardedHost], asItStands
	}
	host := r.Host
	if len(hosts) == 1 {
		host = hosts[0]
	}
	switch {
	case len(uris) > 1 || len(methods) > 1 || len(hosts) > 1:
		return nil, http.StatusForbidden, "the method, URI or host of the request is there twice"
	case len(uris) == 0 || len(methods) == 0:
		return nil, http.StatusBadRequest, "want X-Original-Method and X-Original-URI, or X-Forwarded-Method and X-Forwarded-Uri"
	case !isToken(methods[0]):
		return nil, http.StatusForbidden, "the method of the request is none"
	}
	uri := uris[0]
	if strings.HasPrefix(uri, "?") { // so nginx has it of http://shop.example?query
		uri = "/" + uri
	}
	target, err := url.ParseRequestURI(uri)
	switch {
	case err != nil:
		return nil, http.StatusForbidden, "the URI of the request is none"
	case strings.Contains(uri, "#"):
		return nil, http.StatusForbidden, "the URI of the request has a fragment, which some read as a part of it"
	case dots(target.Path) != dots(pathOf(uri)):
		return nil, http.StatusForbidden, "the path of the request has encoded dots or slashes that some read as another path"
	}
	read(target)
	o := *r
	o.Method, o.URL, o.RequestURI, o.Host = methods[0], target, uri, host
	o.Body, o.ContentLength, o.TransferEncoding = http.NoBody, 0, nil
	return &o, 0, ""
}

// pathOf is the path of a URI as it was sent, behind scheme and host where it has them.
func pathOf(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	return path
}

// readApart tells whether the original request is under other rules by the path that nginx read than by the path as most
// services read it. Only an escaped slash makes that difference: it parts two segments of the one, and is in one segment
// of the other.
func readApart(rules *policy.Rules, original *http.Request) bool {
	if !strings.Contains(strings.ToLower(pathOf(original.RequestURI)), "%2f") {
		return false
	}
	target, err := url.ParseRequestURI(original.RequestURI)
	if err != nil {
		return true
	}
	asSent := *original
	asSent.URL = target
	return !slices.Equal(rules.Match(&asSent), rules.Match(original))
}

// dots counts the segments . and .. of a path. Nginx resolves those that are encoded, such as %2e%2e, and most services
// don't: what differs would be one path to the proxy and another to the service, so neither is believed.
func dots(path string) (n int) {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			n++
		}
	}
	return n
}

// asNginx gives a URL the path by which nginx picks a location: decoded, where an escaped slash is a slash, then cleaned.
func asNginx(u *url.URL) {
	p := u.Path
	if p == "" || p[0] != '/' {
		return
	}
	u.Path, u.RawPath = path.Clean(p), ""
	if u.Path != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")) {
		u.Path += "/"
	}
}

// asItStands leaves a URL to the rules, which read it as net/http's ServeMux does.
func asItStands(*url.URL) {}

// isToken tells whether s may be a method (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const longest = 64
	if s == "" || len(s) > longest {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			continue
		}
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}
