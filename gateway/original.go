package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// The fields in which proxies name the request that they ask about, as net/http spells them.
const (
	originalMethod  = "X-Original-Method"
	originalURI     = "X-Original-Uri"
	forwardedMethod = "X-Forwarded-Method"
	forwardedURI    = "X-Forwarded-Uri"
	forwardedHost   = "X-Forwarded-Host"
)

// originalOf returns the request that a proxy asks about in r: with its method, URI and host, r's peer and fields, and
// no body. Where there is none it returns the status to answer with, and why. That is 403 wherever a client may be the
// cause, so that no client can turn a check into a failure that a proxy lets pass.
func originalOf(r *http.Request) (original *http.Request, status int, problem string) {
	h := r.Header
	methods, uris, host := h[originalMethod], h[originalURI], r.Host
	switch {
	case len(uris) > 0 && (len(h[forwardedURI]) > 0 || len(h[forwardedMethod]) > 0),
		len(h[forwardedURI]) > 0 && len(methods) > 0:
		return nil, http.StatusForbidden, "X-Original-* and X-Forwarded-* both name the request: one of them is the client's"
	case len(uris) == 0:
		methods, uris = h[forwardedMethod], h[forwardedURI]
		if hosts := h[forwardedHost]; len(hosts) == 1 {
			host = hosts[0]
		}
	}
	switch {
	case len(uris) > 1 || len(methods) > 1:
		return nil, http.StatusForbidden, "the method or URI of the request is there twice"
	case len(uris) == 0 || len(methods) == 0:
		return nil, http.StatusBadRequest, "want X-Original-Method and X-Original-URI, or X-Forwarded-Method and X-Forwarded-Uri"
	case !isToken(methods[0]):
		return nil, http.StatusForbidden, "the method of the request is none"
	}
	target, err := url.ParseRequestURI(uris[0])
	if err != nil {
		return nil, http.StatusForbidden, "the URI of the request is none"
	}
	o := *r
	o.Method, o.URL, o.RequestURI, o.Host = methods[0], target, uris[0], host
	o.Body, o.ContentLength, o.TransferEncoding = http.NoBody, 0, nil
	return &o, 0, ""
}

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
