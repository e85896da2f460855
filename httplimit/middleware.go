package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/charging"
	"github.com/sluice-go/sluice/policy"
)

// Options are what a [Middleware] is made of.
type Options struct {
	// Rules say which requests are limited, and how. Nil: none is.
	Rules *policy.Rules

	// Stores has a store for each on_outage that Rules use: around one shared store, usually, what that on_outage
	// says to do while it is away. A rule whose on_outage has no store here is answered as one whose store failed.
	Stores map[policy.OnOutage]sluice.Store

	// Style of the rate fields; "": policy.HeadersDraft.
	Style policy.Headers

	// OnDeny is called for each denial before anything is written, with the rate fields, Retry-After and Cache-Control
	// set. It may set and replace fields, and it may write the whole answer itself, where the rule's status is the
	// default; if it writes nothing, the rule's answer follows. d sums up the verdict; for a request that a rule's deny
	// lists it is a RetryAfter of Never alone. It is called from many goroutines. Nil: the rule's answer.
	OnDeny func(w http.ResponseWriter, r *http.Request, d sluice.Decision)

	// OnError is told of each error of a store, whose request was answered with 503, or passed in shadow mode, but not
	// of requests that were cancelled. It writes nothing. It is called from many goroutines. Nil: nobody is told.
	OnError func(r *http.Request, err error)
}

// Middleware applies a set of rules to HTTP requests. It is immutable and safe for concurrent use.
type Middleware struct {
	o      Options
	shadow bool // nothing is refused, held, or told to the client
}

// New returns a middleware for o.
func New(o Options) *Middleware {
	return &Middleware{o: o, shadow: o.Rules != nil && o.Rules.Mode() == policy.ModeShadow}
}

// Wrap returns a handler that calls next for those requests that may go on, as [Middleware.Serve] does. It has the form
// that chi and others chain.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Serve(w, r, next) })
}

// Serve decides a request, calls next if it may go on, and settles what it cost once next has returned, or panicked.
func (m *Middleware) Serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	reservation, ok := m.Reserve(w, r)
	if !ok {
		return
	}
	if reservation != nil {
		defer func() { _ = reservation.Settle(r.Context(), w.Header()) }() // an error leaves the estimate: the safe side
	}
	next.ServeHTTP(w, r)
}

// Check decides a request, for routers and handlers that are not wrapped. True: it may go on; the rate fields are set
// on w and the Delay of a leaky bucket has been held. False: the answer has been written, and the caller writes none.
//
// What a rule with settle charged stays as it was charged: where there is a response to settle by, use
// [Middleware.Reserve].
//
// All limits of all rules that hold are taken with one [sluice.TakeAll]: all are charged, or none is. Where those
// rules differ in on_outage, the store of the strictest decides them all: deny before local before allow. A request
// that no rule matches passes uncounted, as does one that a rule exempts, for that rule, and a CORS preflight. A request
// that any of the rules denies is refused before anything is charged, a preflight too.
//
// Shadow limits are taken one by one, once the request is known to pass, and before it is held. Their answers, and
// errors, are for the store's observer alone. In shadow mode that holds for all: nothing is refused, held, or told to
// the client.
//
// A client who leaves while it is held has been charged, and the next handler does not run: giving back would let
// those who come later act at times that others were promised.
func (m *Middleware) Check(w http.ResponseWriter, r *http.Request) bool {
	_, ok := m.Reserve(w, r)
	return ok
}

// Reserve decides a request as Check does. Where it may go on, and a rule settles by the response, it also returns
// what was charged, to be settled; it is nil where there is nothing to settle.
func (m *Middleware) Reserve(w http.ResponseWriter, r *http.Request) (*Reservation, bool) {
	if m.o.Rules == nil {
		return nil, true
	}
	var few [8]charging.Part // stays on the stack
	call, denied := charging.Call(few[:0]).Add(m.o.Rules.Match(r), r)
	if denied != nil && !m.shadow {
		m.forbid(w, r, denied)
		return nil, false
	}
	if len(call) == 0 || policy.Preflight(r) {
		return nil, true
	}
	store, err := call.Store(m.o.Stores)
	if err != nil {
		return nil, m.failed(w, r, fmt.Errorf("httplimit: %w", err))
	}
	taken, err := call.Take(r.Context(), store)
	if err != nil {
		return nil, m.failed(w, r, err)
	}
	if !m.shadow {
		setFields(w.Header(), m.o.Style, taken.Asks, taken.Verdict)
	}
	if !taken.Allowed {
		if !m.shadow {
			m.deny(w, r, call, &taken)
		}
		return nil, m.shadow
	}
	charges := call.Pass(r.Context(), store, &taken)
	if !m.shadow && taken.Hold(r.Context()) != nil {
		unavailable(w)
		return nil, false
	}
	return reservation(charges), true
}

// failed answers for a store that could not decide, and tells whether the request may go on all the same.
func (m *Middleware) failed(w http.ResponseWriter, r *http.Request, err error) bool {
	if m.o.OnError != nil && !errors.Is(err, context.Canceled) {
		m.o.OnError(r, err)
	}
	if !m.shadow {
		unavailable(w)
	}
	return m.shadow
}

// deny answers a request that a limit refused.
func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, call charging.Call, taken *charging.Taken) {
	part, limit := call.Limit(taken.Binding())
	as := call[part].Rule.Denial
	setRefusal(w.Header(), taken.Decision)
	if !m.told(w, r, taken.Decision, as) {
		writeDenial(w, as, limit.KeyRule)
	}
}

// forbid answers a request that a rule's deny lists.
func (m *Middleware) forbid(w http.ResponseWriter, r *http.Request, rule *policy.Rule) {
	never := sluice.Decision{RetryAfter: sluice.Never}
	setRefusal(w.Header(), never)
	if !m.told(w, r, never, rule.Forbidden) {
		writeForbidden(w, rule.Forbidden)
	}
}

// told calls OnDeny and tells whether that has written the answer.
func (m *Middleware) told(w http.ResponseWriter, r *http.Request, d sluice.Decision, as policy.Denial) bool {
	if m.o.OnDeny == nil {
		return false
	}
	own := &watched{ResponseWriter: w, status: statusOf(as)}
	m.o.OnDeny(own, r, d)
	return own.wrote
}
