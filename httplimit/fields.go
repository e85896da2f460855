package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// setFields sets the rate fields of a verdict in the given style. The draft's fields are lists, so members are added
// to those that another limit in the same chain has set; the x-ratelimit ones are replaced.
func setFields(h http.Header, style policy.Headers, asks []sluice.Ask, v sluice.Verdict) {
	switch {
	case style == policy.HeadersOff || len(asks) == 0:
	case style == policy.HeadersX:
		setXRateLimit(h, v)
	default:
		setDraft(h, asks, v)
	}
}

func setDraft(h http.Header, asks []sluice.Ask, v sluice.Verdict) {
	quotas, states := make([]byte, 0, 96), make([]byte, 0, 96)
	for i, a := range asks {
		quotas = appendQuota(quotas, a.Key.Rule, a.Strategy.Limit())
		if i < len(v.Each) && (v.Refused < 0 || i <= v.Refused) {
			states = appendState(states, a.Key.Rule, v.Each[i].Remaining, wait(v.Each[i]))
		}
	}
	h.Add("RateLimit-Policy", string(quotas))
	h.Add("RateLimit", string(states))
}

// setXRateLimit shows the limit that binds: the one that refused, else the one with the least remaining.
func setXRateLimit(h http.Header, v sluice.Verdict) {
	binds := v.Decision
	if v.Refused >= 0 && v.Refused < len(v.Each) {
		binds = v.Each[v.Refused]
	} else {
		for _, d := range v.Each {
			if d.Remaining == v.Remaining {
				binds = d
				break
			}
		}
	}
	h.Set("X-RateLimit-Limit", strconv.FormatInt(binds.Limit, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(binds.Remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(seconds(wait(binds)), 10))
}

// wait is what t counts: until a refused request passes, else until the state is as good as new.
func wait(d sluice.Decision) time.Duration {
	if d.RetryAfter > 0 && d.RetryAfter != sluice.Never {
		return d.RetryAfter
	}
	return d.ResetAfter
}

// setRefusal sets the fields of every denial. Retry-After is in whole seconds, rounded up, so that a client who obeys
// passes; it is left out where no wait helps.
func setRefusal(h http.Header, d sluice.Decision) {
	h.Set("Cache-Control", "no-store")
	if d.RetryAfter != sluice.Never {
		h.Set("Retry-After", strconv.FormatInt(max(1, seconds(d.RetryAfter)), 10))
	}
}

// appendQuota adds one member of RateLimit-Policy: "name";q=100;w=60.
func appendQuota(b []byte, name string, l sluice.Limit) []byte {
	b = appendName(b, name)
	b = appendInt(append(b, ";q="...), l.Count)
	return appendInt(append(b, ";w="...), max(1, seconds(l.Period)))
}

// appendState adds one member of RateLimit: "name";r=50;t=30.
func appendState(b []byte, name string, remaining int64, wait time.Duration) []byte {
	b = appendName(b, name)
	b = appendInt(append(b, ";r="...), remaining)
	return appendInt(append(b, ";t="...), seconds(wait))
}

// appendName adds a separator, if the list has members, and the name as a structured-field string.
func appendName(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	for _, c := range []byte(fieldName(name)) {
		if c == '"' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

// fieldName is a limit's name in printable ASCII, which is all that a structured-field string may hold: other bytes
// become %XX. The problem body uses the same spelling, so that a client can match the two.
func fieldName(name string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool { return c >= ' ' && c <= '~' }
	for i := 0; i < len(name); i++ {
		if plain(name[i]) {
			continue
		}
		b := make([]byte, 0, len(name)+8)
		for _, c := range []byte(name) {
			if plain(c) {
				b = append(b, c)
			} else {
				b = append(b, '%', hex[c>>4], hex[c&15])
			}
		}
		return string(b)
	}
	return name
}

// mostInt is the largest integer of a structured field: 15 digits (RFC 9651, 3.3.1).
const mostInt = 999_999_999_999_999

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, min(max(n, 0), mostInt), 10) }

// seconds is d in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
