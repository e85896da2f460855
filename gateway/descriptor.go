package gateway

import (
	"net/http"
	"net/url"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice/policy"
)

// described returns the request that a descriptor stands for, and the name of the rule that it asks for, "" where the
// request is to be matched. It is nil where the descriptor is no request. See [RateLimit].
func described(d *common.RateLimitDescriptor) (req *http.Request, rule string) {
	req = &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}}
	known := false
	for _, e := range d.GetEntries() {
		value := e.GetValue()
		switch e.GetKey() {
		case "rule":
			rule, known = value, true
		case "path", ":path":
			req.URL, known = target(value), true
		case "method", ":method":
			req.Method = value
		case "host", ":authority":
			req.Host = value
		case "remote_address":
			req.RemoteAddr = value
		case "masked_remote_address": // a network: its first address stands for it
			req.RemoteAddr, _, _ = strings.Cut(value, "/")
		default:
			req.Header.Add(e.GetKey(), value)
		}
	}
	if !known {
		return nil, ""
	}
	return req, rule
}

// target reads a path with its query. What follows a # in the path is cut off; a query is all that follows the first
// question mark, since services differ on whether a # ends it. What is no URI, because of its query too, is a path all the
// same, so that no client gets past the rules by what can't be read.
func target(uri string) *url.URL {
	p, query, _ := strings.Cut(uri, "?")
	p, _, _ = strings.Cut(p, "#")
	u, err := url.ParseRequestURI(p)
	if err != nil {
		u = &url.URL{Path: p}
		if decoded, err := url.PathUnescape(p); err == nil {
			u.Path, u.RawPath = decoded, p
		}
	}
	u.RawQuery = query
	return u
}

// rulesOfDescriptor returns the rules that hold for a descriptor.
func rulesOfDescriptor(rules *policy.Rules, req *http.Request, name string) []*policy.Rule {
	if req == nil || rules.Mode() == policy.ModeOff {
		return nil
	}
	if name == "" {
		return rules.Match(req)
	}
	for i, r := range rules.All() {
		if r.Name == name {
			return rules.All()[i : i+1]
		}
	}
	return nil
}
