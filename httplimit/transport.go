package httplimit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/outgoing"
)

// longestWait bounds what a server can make its callers wait: a Retry-After beyond it counts as this much.
const longestWait = time.Hour

// Transport returns a RoundTripper for calls to somebody else's API: each waits until l lets one unit pass for subject,
// and until the time that the API last named in a Retry-After, of a 429 or 503, has come. Nil base is
// http.DefaultTransport.
//
// A call that would wait beyond its context's deadline fails with context.DeadlineExceeded as soon as that is known, and
// charges nothing; see [sluice.Limiter.Wait] for the other errors. Answers are returned as they come: a 429 is the
// caller's to retry. It is safe for concurrent use. A Retry-After holds for all calls through this transport that are not
// under way yet, so use one for each API. They then wait for l in any order.
func Transport(base http.RoundTripper, l *sluice.Limiter, subject string) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base: base, turn: outgoing.Turn{Limiter: l, Subject: subject}}
}

type transport struct {
	base http.RoundTripper
	turn outgoing.Turn
}

// RoundTrip waits and calls base. As its contract demands, it closes the request's body also where it fails.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.turn.Wait(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	res, err := t.base.RoundTrip(r)
	if err == nil && (res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable) {
		t.turn.Pause(retryAfter(res.Header, time.Now()))
	}
	return res, err
}

// CloseIdleConnections closes those of base, if it keeps any: http.Client's method of that name asks its transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// retryAfter reads a Retry-After in seconds or as a date (RFC 9110, section 10.2.3); what is neither is 0. A date is
// counted from that of the answer, if it has one, since clocks differ.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(longestWait/time.Second))) * time.Second
	}
	if text != "" && strings.Trim(text, "0123456789") == "" { // more seconds than fit
		return longestWait
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), longestWait)
}
