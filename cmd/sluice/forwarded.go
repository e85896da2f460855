package main

import (
	"net/http"
	"net/http/httputil"
	"sync/atomic"

	"github.com/sluice-go/sluice/policy"
)

// setForwarded tells the upstream of whom the request is. Of a peer that is trusted, X-Forwarded-For, -Host and -Proto
// stay as they are, and X-Forwarded-For gets the peer's own address at its end. In place of what any other peer says, they
// are those of its connection.
func setForwarded(r *httputil.ProxyRequest, trusted bool) {
	if !trusted {
		r.SetXForwarded()
		return
	}
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = said
		}
	}
}

// trusted tells which peers are believed: the trusted_proxies of the rules as they are. The zero trusted is ready.
type trusted struct {
	last atomic.Pointer[believed]
}

// believed is who a request is of by one set of rules, kept since rules change seldom.
type believed struct {
	rules  *policy.Rules
	client policy.Subject
}

// sent tells whether r came straight from a trusted proxy: whether the limits would believe what it says of a client.
func (t *trusted) sent(rules *policy.Rules, r *http.Request) bool {
	b := t.last.Load()
	if b == nil || b.rules != rules {
		b = &believed{rules, policy.IP(rules.Config().TrustedProxies...)}
		t.last.Store(b)
	}
	const nobody = "0.0.0.0" // no peer's own address
	return b.client(&http.Request{RemoteAddr: r.RemoteAddr, Header: http.Header{"X-Forwarded-For": {nobody}}}) == nobody
}
