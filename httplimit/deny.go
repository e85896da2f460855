package httplimit

import (
	"net/http"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// Deny writes the answer to a denial: 429 with Retry-After, unless no wait helps, Cache-Control: no-store, and a body
// of type application/problem+json. It is for handlers that ask their limiter themselves; nothing may have been
// written before.
//
// A Decision does not know the name of its limit. Where no RateLimit field is set yet, Deny says "default", with the
// most units at one instant for q, and no w.
func Deny(w http.ResponseWriter, d sluice.Decision) {
	name, h := "", w.Header()
	if h.Get("RateLimit") == "" {
		name = "default"
		h.Set("RateLimit-Policy", string(appendInt(append(appendName(nil, name), ";q="...), d.Limit)))
		h.Set("RateLimit", string(appendState(nil, name, d.Remaining, wait(d))))
	}
	setRefusal(h, d)
	writeDenial(w, policy.Denial{}, name)
}

// writeDenial writes a denial as the rule has it, or else as a problem that names the limit that was exceeded. All
// fields but those of the body are set already.
func writeDenial(w http.ResponseWriter, as policy.Denial, limit string) {
	if !writeOwn(w, as) {
		writeProblem(w, exceeded(statusOf(as), limit))
	}
}

// writeForbidden is writeDenial for a request that was refused without a limit.
func writeForbidden(w http.ResponseWriter, as policy.Denial) {
	if !writeOwn(w, as) {
		writeProblem(w, plain(statusOf(as)))
	}
}

// writeOwn writes the rule's own body, if it has one.
func writeOwn(w http.ResponseWriter, as policy.Denial) bool {
	if as.Body == "" {
		return false
	}
	contentType := as.Type
	if contentType == "" {
		contentType = "text/plain; charset=utf-8"
	}
	writeBody(w, statusOf(as), contentType, []byte(as.Body))
	return true
}

func statusOf(d policy.Denial) int {
	if d.Status == 0 {
		return http.StatusTooManyRequests
	}
	return d.Status
}
