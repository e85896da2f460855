package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/sluice-go/sluice/policy"
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

// proxy passes requests on to an upstream.
type proxy struct {
	forward  http.Handler
	upgrades sync.WaitGroup // requests that may become another protocol's connection, and such connections
}

// newProxy returns a proxy that waits for the upstream's connection, for each part of the client's body, and then for the
// header of the answer, for at most timeout each. Whose X-Forwarded-* fields go on is up to rules. What comes of the upstream goes on at once, so that
// a slow answer shows what there is of it.
func newProxy(upstream *url.URL, timeout time.Duration, rules func() *policy.Rules, errorLog *log.Logger) *proxy {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: timeout}).DialContext
	transport.TLSHandshakeTimeout = timeout
	transport.ResponseHeaderTimeout = timeout
	p := &proxy{}
	p.forward = takeBody(timeout, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			setForwarded(r, rules().Trusts(r.In))
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, r *http.Request, err error) { answerFailed(w, r, err, errorLog) },
		ErrorLog:      errorLog,
	})
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		p.upgrades.Add(1)
		defer p.upgrades.Done()
	}
	p.forward.ServeHTTP(w, r)
}

// answerFailed answers a request that the upstream has not answered.
func answerFailed(w http.ResponseWriter, r *http.Request, err error, errorLog *log.Logger) {
	status, says := http.StatusBadGateway, "The upstream does not answer."
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		status, says = http.StatusGatewayTimeout, "The upstream did not answer in time."
	}
	if fault, why := uploadFault(r); fault != 0 {
		status, says = fault, why
	} else if r.Context().Err() == nil { // else the client has gone, which is no fault
		errorLog.Printf("http: proxy error: %v", err)
	}
	http.Error(w, says, status)
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
