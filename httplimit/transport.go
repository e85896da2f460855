package httplimit

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
)

// longestWait bounds what a server can make its callers wait: a Retry-After beyond it counts as this much.
const longestWait = time.Hour

// Transport returns a RoundTripper for calls to somebody else's API: each waits until l lets one unit pass for subject,
// and until the time that the API last named in a Retry-After, of a 429 or 503, has come. Nil base is
// http.DefaultTransport.
//
// A call that would wait beyond its context's deadline fails at once with context.DeadlineExceeded and charges nothing; see
// [sluice.Limiter.Wait] for the other errors. Answers are returned as they come: a 429 is the caller's to retry. It is
// safe for concurrent use. A Retry-After holds for all calls through this transport, so use one for each API.
func Transport(base http.RoundTripper, l *sluice.Limiter, subject string) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base: base, limiter: l, subject: subject, start: time.Now()}
}

type transport struct {
	base    http.RoundTripper
	limiter *sluice.Limiter
	subject string
	start   time.Time
	until   atomic.Int64 // ns since start: when the API wants to be called again
}

// RoundTrip waits and calls base. As its contract demands, it closes the request's body also where it fails.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.wait(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	res, err := t.base.RoundTrip(r)
	if err == nil && (res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable) {
		t.obey(retryAfter(res.Header.Get("Retry-After"), time.Now()))
	}
	return res, err
}

func (t *transport) wait(ctx context.Context) error {
	for {
		pause := time.Duration(t.until.Load()) - time.Since(t.start)
		if pause <= 0 {
			return t.limiter.Wait(ctx, t.subject, 1)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
			return context.DeadlineExceeded
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// obey puts the next call off. An earlier, longer wait stands.
func (t *transport) obey(d time.Duration) {
	until := int64(time.Since(t.start) + d)
	for {
		was := t.until.Load()
		if until <= was || t.until.CompareAndSwap(was, until) {
			return
		}
	}
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3); what is neither is 0.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return min(time.Duration(min(seconds, uint64(longestWait/time.Second)))*time.Second, longestWait)
	}
	if text != "" && strings.Trim(text, "0123456789") == "" { // more seconds than fit
		return longestWait
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), longestWait)
}
