package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice"
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
	// default; if it writes nothing, the rule's answer follows. d sums up the verdict. It is called from many goroutines. Nil: the rule's answer.
	OnDeny func(w http.ResponseWriter, r *http.Request, d sluice.Decision)

	// OnError is told of each error of a store, whose request was answered with 503, but not of requests that were
	// cancelled. It writes nothing. It is called from many goroutines. Nil: nobody is told.
	OnError func(r *http.Request, err error)
}

// Middleware applies a set of rules to HTTP requests. It is immutable and safe for concurrent use.
type Middleware struct{ o Options }

// New returns a middleware for o.
func New(o Options) *Middleware { return &Middleware{o} }

// Wrap returns a handler that calls next for those requests that [Middleware.Check] lets pass. It has the form that
// chi and others chain.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.Check(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Check decides a request, for routers and handlers that are not wrapped. True: it may go on; the rate fields are set
// on w and the Delay of a leaky bucket has been held. False: the answer has been written, and the caller writes none.
//
// All limits of all rules that hold are taken with one [sluice.TakeAll]: all are charged, or none is. Where those
// rules differ in on_outage, the store of the strictest decides them all: deny before local before allow. A request
// that no rule matches passes uncounted, as does a CORS preflight.
//
// A client who leaves while it is held has been charged, and the next handler does not run: giving back would let
// those who come later act at times that others were promised.
func (m *Middleware) Check(w http.ResponseWriter, r *http.Request) bool {
	if m.o.Rules == nil || policy.Preflight(r) {
		return true
	}
	rules := m.o.Rules.Match(r)
	var asks []sluice.Ask
	for _, rule := range rules {
		asks = append(asks, rule.Asks(r, 1)...)
	}
	if len(asks) == 0 {
		return true
	}
	v, err := m.take(r.Context(), rules, asks)
	if err != nil {
		if m.o.OnError != nil && !errors.Is(err, context.Canceled) {
			m.o.OnError(r, err)
		}
		unavailable(w)
		return false
	}
	setFields(w.Header(), m.o.Style, asks, v)
	if !v.Allowed {
		m.deny(w, r, v, rules, asks)
		return false
	}
	if v.Hold(r.Context()) != nil {
		unavailable(w)
		return false
	}
	return true
}

func (m *Middleware) take(ctx context.Context, rules []*policy.Rule, asks []sluice.Ask) (sluice.Verdict, error) {
	outage := strictest(rules)
	store := m.o.Stores[outage]
	if store == nil {
		return sluice.Verdict{}, fmt.Errorf("httplimit: rule %s: no store for on_outage %s", rules[0].Name, outage)
	}
	return sluice.TakeAll(ctx, store, asks)
}

// strictest is the on_outage that lets least pass: what any of the rules asks for, none of the others may loosen.
func strictest(rules []*policy.Rule) policy.OnOutage {
	outage := policy.Allow
	for _, rule := range rules {
		switch rule.OnOutage {
		case policy.Deny:
			return policy.Deny
		case policy.Allow:
		default:
			outage = policy.Local
		}
	}
	return outage
}

func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, v sluice.Verdict, rules []*policy.Rule, asks []sluice.Ask) {
	refused := min(max(v.Refused, 0), len(asks)-1) // a foreign store may name none
	as := refusing(rules, refused).Denial
	setRefusal(w.Header(), v.Decision)
	if m.o.OnDeny != nil {
		own := &watched{ResponseWriter: w, status: statusOf(as)}
		m.o.OnDeny(own, r, v.Decision)
		if own.wrote {
			return
		}
	}
	writeDenial(w, as, asks[refused].Key.Rule)
}

// refusing returns the rule that ask number refused belongs to: asks are those of the rules in their order.
func refusing(rules []*policy.Rule, refused int) *policy.Rule {
	for _, rule := range rules {
		if refused < len(rule.Limits) {
			return rule
		}
		refused -= len(rule.Limits)
	}
	return rules[0]
}

// watched tells whether OnDeny has written an answer. A body without a status gets the rule's status, not 200. The
// next handler never gets one.
type watched struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *watched) WriteHeader(status int) {
	w.wrote = w.wrote || status >= 200 // an informational status is not the answer
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(b)
}
