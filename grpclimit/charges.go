package grpclimit

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// settleTime bounds a settlement, beside the store's own timeout: the call ends after it.
const settleTime = time.Second

// charges are what a call was charged under rules with settle, until the handler says what it cost.
type charges struct {
	store sluice.Store // the one that charged
	list  []charge
}

// charge is what one limit was charged.
type charge struct {
	rule    *policy.Rule
	ask     sluice.Ask // as it was taken
	charged int64
	at      int64 // the store's clock, µs
}

// charged returns what the rules with settle were charged; nil if that is nothing.
func charged(store sluice.Store, rules []*policy.Rule, asks []sluice.Ask, v sluice.Verdict) *charges {
	var c *charges
	first := 0
	for _, rule := range rules {
		n := rule.Enforced()
		for j := first; rule.Settle != "" && j < min(first+n, len(v.Each)); j++ {
			c = c.add(store, rule, asks[j], v.Each[j])
		}
		first += n
	}
	return c
}

// add appends a charge, if there was one, and returns the charges, which it makes if need be.
func (c *charges) add(store sluice.Store, rule *policy.Rule, ask sluice.Ask, d sluice.Decision) *charges {
	if !d.Allowed || d.Charged <= 0 || d.Source == sluice.Assumed { // nothing that could be corrected
		return c
	}
	if c == nil {
		c = &charges{store: store}
	}
	c.list = append(c.list, charge{rule: rule, ask: ask, charged: d.Charged, at: d.At})
	return c
}

// names are the headers that the charges are settled by, each once, in their canonical form.
func (c *charges) names() []string {
	var names []string
	for i := range c.list {
		if name := c.list[i].rule.Settle; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// settle corrects each charge to what h says that the call cost: less is given back, more is owed, up to one burst. A
// charge of which h says nothing stands. It also runs where ctx is already done, under the store's own timeout.
func (c *charges) settle(ctx context.Context, h http.Header) error {
	asks := make([]sluice.Ask, 0, len(c.list))
	for _, one := range c.list {
		actual, ok := one.rule.Actual(h)
		if !ok || actual == one.charged {
			continue
		}
		a := one.ask
		a.Mode, a.N, a.At = sluice.Settle, actual-one.charged, one.at
		asks = append(asks, a)
	}
	if len(asks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	_, err := sluice.TakeAll(ctx, c.store, asks)
	return err
}

// takeShadows takes the shadow limits of the rules one by one, and adds what is to be settled of them to c. Their
// verdicts and errors are the observer's of the store.
func takeShadows(r *http.Request, store sluice.Store, rules []*policy.Rule, c *charges) *charges {
	for _, rule := range rules {
		if rule.Enforced() == len(rule.Limits) {
			continue
		}
		cost := rule.Cost(r)
		for i := range rule.Limits {
			l := &rule.Limits[i]
			if !l.Shadow {
				continue
			}
			ask := l.Ask(r, cost)
			d, err := store.Take(r.Context(), ask)
			if err == nil && rule.Settle != "" {
				c = c.add(store, rule, ask, d)
			}
		}
	}
	return c
}
