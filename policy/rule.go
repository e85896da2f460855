package policy

import (
	"net/http"
	"time"

	"github.com/sluice-go/sluice"
)

// Rule is a compiled RuleConfig, with its defaults filled in. It is shared and must not be changed.
type Rule struct {
	Name      string
	Match     string // as configured
	OnOutage  OnOutage
	Denial    Denial  // of a request that a limit refuses; Status is never 0
	Forbidden Denial  // of a request that the rule's deny lists; Status is never 0
	Settle    string  // name of the response's header that Actual reads; "": none
	Limits    []Limit // the shadow ones too

	cost         cost
	exempt, deny *list // nil: nobody
	enforced     int   // limits that are no shadows
}

// Limit is a compiled LimitConfig, with its defaults filled in.
type Limit struct {
	Name        string
	KeyRule     string          // Key.Rule: the rule's name, or "rule/limit" where several limits refuse, and of a shadow
	Algorithm   string          // one of Algorithms
	Strategy    sluice.Strategy // of subjects without an override; never nil
	SubjectName string          // as configured, such as "header:X-API-Key"
	Subject     Subject         // falls back to the client's address: never ""
	Shadow      bool            // never refuses: not among Rule.Asks

	key       keyer
	overrides map[string][]override // by Key.Subject; nil: none
}

// Asks returns what to ask the store about a request of this rule: each limit that is no shadow for cost units, in
// order. Take them together with sluice.TakeAll. [Rule.Cost] says what a request costs.
func (r *Rule) Asks(req *http.Request, cost int64) []sluice.Ask {
	return r.AppendAsks(make([]sluice.Ask, 0, r.enforced), req, cost)
}

// AppendAsks appends what Asks returns to asks.
func (r *Rule) AppendAsks(asks []sluice.Ask, req *http.Request, cost int64) []sluice.Ask {
	for i := range r.Limits {
		if l := &r.Limits[i]; !l.Shadow {
			asks = append(asks, l.Ask(req, cost))
		}
	}
	return asks
}

// Enforced returns how many asks Asks returns: the limits that are no shadows.
func (r *Rule) Enforced() int { return r.enforced }

// Ask returns what to ask the store about a request under this limit alone. That of a shadow is taken by itself, once
// the request is known to pass, and whatever the answer is, it is not the client's.
func (l *Limit) Ask(req *http.Request, cost int64) sluice.Ask {
	subject, st := l.Subject(req), l.Strategy
	if l.overrides[subject] != nil {
		st = l.StrategyFor(subject, time.Now())
	}
	return sluice.Ask{Strategy: st, Key: sluice.Key{Rule: l.KeyRule, Subject: subject}, N: cost}
}
