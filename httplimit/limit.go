package httplimit

import (
	"net/http"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// Limit returns a middleware that takes one unit of l for each request, counted by subject, before the next handler
// runs. It chains with others of its form:
//
//	r.Use(httplimit.Limit(perIP, policy.IP()), httplimit.Limit(perKey, policy.Header("X-API-Key")))
//
// In a chain each limit is charged as it is reached: one that refuses leaves those before it charged. For all or none,
// use rules and [New]. A request without the subject (it is "") is counted by its IP, so that those who leave a header
// out share no budget. A nil subject is policy.IP().
//
// See the package comment for the answer to a denial and to a store that cannot decide, and for the rate fields.
func Limit(l *sluice.Limiter, subject policy.Subject) func(http.Handler) http.Handler {
	if subject == nil {
		subject = policy.IP()
	} else {
		subject = policy.Or(subject, policy.IP())
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if policy.Preflight(r) {
				next.ServeHTTP(w, r)
				return
			}
			ask := l.Ask(subject(r), 1)
			d, err := l.Allow(r.Context(), ask.Key.Subject)
			if err != nil {
				unavailable(w)
				return
			}
			v := sluice.Verdict{Decision: d, Refused: -1, Each: []sluice.Decision{d}}
			if !d.Allowed {
				v.Refused = 0
			}
			setFields(w.Header(), policy.HeadersDraft, []sluice.Ask{ask}, v)
			switch {
			case !d.Allowed:
				setRefusal(w.Header(), d)
				writeDenial(w, policy.Denial{}, ask.Key.Rule)
			case d.Hold(r.Context()) != nil:
				unavailable(w)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}
