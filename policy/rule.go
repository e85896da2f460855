package policy

import (
	"net/http"

	"github.com/sluice-go/sluice"
)

// Rule is a compiled RuleConfig, with its defaults filled in. It is shared and must not be changed.
type Rule struct {
	Name     string
	Match    string // as configured
	OnOutage OnOutage
	Denial   Denial // Status is never 0
	Limits   []Limit
}

// Limit is a compiled LimitConfig, with its defaults filled in.
type Limit struct {
	Name        string
	KeyRule     string          // Key.Rule: the rule's name, or "rule/limit" where the rule has several limits
	Algorithm   string          // one of Algorithms
	Strategy    sluice.Strategy // never nil
	SubjectName string          // as configured, such as "header:X-API-Key"
	Subject     Subject         // falls back to the client's address: never ""
}

// Asks returns what to ask the store about a request of this rule: each limit for cost units, in order. Take them
// together with sluice.TakeAll.
func (r *Rule) Asks(req *http.Request, cost int64) []sluice.Ask {
	asks := make([]sluice.Ask, len(r.Limits))
	for i := range r.Limits {
		l := &r.Limits[i]
		asks[i] = sluice.Ask{Strategy: l.Strategy, Key: sluice.Key{Rule: l.KeyRule, Subject: l.Subject(req)}, N: cost}
	}
	return asks
}
