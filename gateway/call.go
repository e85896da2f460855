package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// call is one call of Envoy: all limits of all its descriptors.
type call struct {
	shadow  bool // nothing is refused or told
	rules   []*policy.Rule
	asked   []*asked
	denied  []*policy.Rule // by descriptor: the rule whose deny lists it; nil: none
	refused *asked         // the one that refused; nil: none did
}

// asked is one limit of one descriptor.
type asked struct {
	descriptor int
	rule       *policy.Rule
	limit      *policy.Limit
	ask        sluice.Ask
	refund     bool

	decision sluice.Decision
}

// over tells whether the limit would refuse what it was asked about. Those that another held back have no RetryAfter.
func (a *asked) over() bool { return !a.refund && a.decision.RetryAfter > 0 }

// maxHits is the most that Envoy's API lets a call add.
const maxHits = 1_000_000_000

// add adds a descriptor.
func (c *call) add(rules *policy.Rules, d *common.RateLimitDescriptor, hits uint32) {
	number := len(c.denied)
	c.denied = append(c.denied, nil)
	req, name := described(d)
	for _, rule := range rulesOfDescriptor(rules, req, name) {
		switch rule.Standing(req) {
		case policy.Denied:
			if c.denied[number] == nil {
				c.denied[number] = rule
			}
			continue
		case policy.Exempt:
			continue
		}
		c.rules = append(c.rules, rule)
		n := cost(rule, req, d, hits)
		for i := range rule.Limits {
			l := &rule.Limits[i]
			c.asked = append(c.asked, &asked{descriptor: number, rule: rule, limit: l, ask: l.Ask(req, n), refund: d.GetIsNegativeHits()})
		}
	}
}

func cost(rule *policy.Rule, req *http.Request, d *common.RateLimitDescriptor, hits uint32) int64 {
	switch {
	case d.GetHitsAddend() != nil:
		return int64(min(d.GetHitsAddend().GetValue(), maxHits))
	case hits > 0:
		return int64(min(hits, maxHits))
	}
	return rule.Cost(req)
}

// decide charges all limits, or none where one refuses. Shadows are asked of calls that pass.
func (c *call) decide(ctx context.Context, stores map[policy.OnOutage]sluice.Store) error {
	if len(c.rules) == 0 {
		return nil
	}
	store := stores[policy.Strictest(c.rules)]
	enforced := make([]*asked, 0, len(c.asked))
	for _, a := range c.asked {
		if !a.refund && !a.limit.Shadow {
			enforced = append(enforced, a)
		}
	}
	barred := c.barred()
	if barred {
		look(ctx, store, enforced)
	} else if err := c.take(ctx, store, enforced); err != nil {
		return err
	}
	for _, a := range c.asked {
		switch {
		case a.refund:
			a.giveIn(ctx, store)
		case a.limit.Shadow && c.refused == nil && !barred:
			_, _ = store.Take(ctx, a.ask) // for the store's observer
		}
	}
	return nil
}

// barred tells whether a rule refuses a descriptor for who it is.
func (c *call) barred() bool {
	return !c.shadow && slices.ContainsFunc(c.denied, func(r *policy.Rule) bool { return r != nil })
}

// take charges limits together. Where one refuses, those after it, which the store has not looked at, are looked at for
// their status.
func (c *call) take(ctx context.Context, store sluice.Store, enforced []*asked) error {
	asks := make([]sluice.Ask, len(enforced))
	for i, a := range enforced {
		asks[i] = a.ask
	}
	v, err := sluice.TakeAll(ctx, store, asks)
	if err != nil {
		return err
	}
	for i, a := range enforced {
		a.decision = v.Each[i]
	}
	if !v.Allowed {
		c.refused = enforced[v.Refused]
		look(ctx, store, enforced[v.Refused+1:])
	}
	return nil
}

// look asks about limits and charges nothing. What can't be seen in time is left out of the answer.
func look(ctx context.Context, store sluice.Store, limits []*asked) {
	for _, a := range limits {
		ask := a.ask
		ask.Mode = sluice.Peek
		if d, err := store.Take(ctx, ask); err == nil {
			a.decision = d
		}
	}
}

// giveIn gives back n units of what was charged of late: at the time that the store's clock shows now. What can't be
// given back in time stays charged.
func (a *asked) giveIn(ctx context.Context, store sluice.Store) {
	ask := a.ask
	ask.Mode, ask.N = sluice.Peek, 0
	d, err := store.Take(ctx, ask)
	if err != nil {
		return
	}
	a.decision = d
	if a.ask.N == 0 {
		return
	}
	ask.Mode, ask.N, ask.At = sluice.Settle, -a.ask.N, d.At
	if d, err = store.Take(ctx, ask); err == nil {
		a.decision = d
	}
}

// until is until a refused request passes, else until the state is as good as new.
func until(d sluice.Decision) time.Duration {
	if d.RetryAfter > 0 && d.RetryAfter != sluice.Never {
		return d.RetryAfter
	}
	return d.ResetAfter
}
