// Package charging decides calls under rules: all limits that count a call are charged together, or none is. What is
// charged can be settled by what the call turns out to cost.
package charging

import (
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// Call is what is decided at once: one request under the rules that count it, or several requests, each under its own.
// Add makes it. The limits of a call are those of its parts, in order. A call is used by one goroutine.
type Call []Part

// Part is a request under one of the rules that count it.
type Part struct {
	Rule    *policy.Rule
	Request *http.Request
	Cost    int64 // units, of each limit of the rule
}

// Add appends r under those of matched that count it, for what they say that it costs, and returns the first of matched
// that denies it; nil if none does.
func (c Call) Add(matched []*policy.Rule, r *http.Request) (_ Call, denied *policy.Rule) {
	for _, rule := range matched {
		switch rule.Standing(r) {
		case policy.Counted:
			c = append(c, Part{Rule: rule, Request: r, Cost: rule.Cost(r)})
		case policy.Denied:
			if denied == nil {
				denied = rule
			}
		}
	}
	return c, denied
}

// Store returns the one of stores that decides the whole call: that of the strictest on_outage among its rules. The call
// has a part. It is an error, without a package's name, if stores lacks it.
func (c Call) Store(stores map[policy.OnOutage]sluice.Store) (sluice.Store, error) {
	outage := c.strictest()
	store := stores[outage]
	if store == nil {
		return nil, fmt.Errorf("rule %s: no store for on_outage %s", c[0].Rule.Name, outage)
	}
	return store, nil
}

func (c Call) strictest() policy.OnOutage {
	var few [8]*policy.Rule // stays on the stack
	rules := few[:0]
	for i := range c {
		rules = append(rules, c[i].Rule)
	}
	return policy.Strictest(rules)
}

// Limit returns the limit that ask number i of [Taken] is for, and the number of its part; -1 and nil if the call has no
// such ask.
func (c Call) Limit(i int) (part int, l *policy.Limit) {
	for part := range c {
		limits := c[part].Rule.Limits
		for j := range limits {
			if limits[j].Shadow {
				continue
			}
			if i == 0 {
				return part, &limits[j]
			}
			i--
		}
	}
	return -1, nil
}

// asks are those of the limits that are no shadows; nil if all are.
func (c Call) asks() []sluice.Ask {
	n := 0
	for i := range c {
		n += c[i].Rule.Enforced()
	}
	if n == 0 {
		return nil
	}
	asks := make([]sluice.Ask, 0, n)
	for i := range c {
		asks = c[i].Rule.AppendAsks(asks, c[i].Request, c[i].Cost)
	}
	return asks
}
