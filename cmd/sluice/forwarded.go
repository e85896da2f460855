package main

import "net/http/httputil"

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
