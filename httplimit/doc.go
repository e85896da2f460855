// Package httplimit puts limits in front of an [net/http.Handler].
//
// [Limit] is one limiter in front of one handler, in the func(http.Handler) http.Handler form that chi and others
// chain. [New] applies a whole set of rules: it matches the request, takes all limits of all rules that hold with one
// [sluice.TakeAll], and lets the request pass or answers for it. [Deny] is for a handler that asks its limiter itself.
//
// Before the next handler runs, the rate fields are set, and the Delay of a leaky bucket has been held. The
// ResponseWriter that the next handler gets is the server's own: Flusher, Hijacker and ResponseController work.
//
// A denial is 429 (or what the rule says), with the rate fields, Retry-After, Cache-Control: no-store and a body of
// type application/problem+json. A store that cannot decide is 503, never 500 and never an empty 200; the next handler
// is then not called. A CORS preflight passes uncounted. A request that a rule denies by its list is 403, without
// Retry-After.
//
// A rule with settle is charged again, or given back, once the handler has returned and the response says what the
// request cost: in a header or trailer that the handler has set. The response is not wrapped for that, so it streams as
// it would, and it ends after the settlement. A handler that panics is settled too, by what it has set until then: a
// client who hangs up early pays what was done for it. [Middleware.Wrap] and [Middleware.Serve] do it;
// [Middleware.Reserve] is for who calls the handler in another way.
//
// In shadow mode rules are decided, charged and reported to the stores' observer, and the client sees nothing of it: no
// refusal, no rate fields, no Delay. Requests then pass when a store fails, too.
//
// # Rate fields
//
// In the draft style the fields are those of draft-ietf-httpapi-ratelimit-headers-10, one list member for each limit:
//
//	RateLimit-Policy: "login";q=5;w=60
//	RateLimit: "login";r=9;t=6
//
// q is the limit's Count, the units that a subject gets in every w, its Period in whole seconds, rounded up. r is what
// would pass now; a token bucket or a leaky one may start with r above q, since its burst may be. t is, for the limit
// that refused, the seconds until this request would pass, and for all others those until the state is as good as new,
// rounded up. A limit that was not decided, since one before it refused, has a policy and no RateLimit member.
//
// In the x-ratelimit style there is one limit to show, the one that binds: X-RateLimit-Limit is the most units at one
// instant, X-RateLimit-Remaining what would pass now, and X-RateLimit-Reset the same seconds as t.
package httplimit
