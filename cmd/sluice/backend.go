package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// parseUpstream reads the URL of a back end: http or https, with a host, and without a query or fragment, which no
// request could keep.
func parseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--upstream: not a URL; want http://host[:port] or https://host[:port]")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("--upstream %q: want http://host[:port] or https://host[:port]", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("--upstream %q: want no query and no fragment", u.Redacted())
	}
	return u, nil
}

// proxy passes requests on to upstream. X-Forwarded-For, -Host and -Proto are those of the connection that came in:
// what a client claims in them is dropped. An upstream that does not answer is 502.
func proxy(upstream *url.URL, errors *log.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.SetXForwarded()
		},
		ErrorLog: errors,
	}
}

// echo answers with what was asked: the method, path and query. It shows no header and no body, where secrets are.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body := json.NewEncoder(w)
	body.SetEscapeHTML(false)
	_ = body.Encode(struct { // a client that has gone is no fault
		Method string `json:"method"`
		Path   string `json:"path"`
		Query  string `json:"query,omitempty"`
	}{r.Method, r.URL.Path, r.URL.RawQuery})
}
