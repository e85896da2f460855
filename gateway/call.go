package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/charging"
	"github.com/sluice-go/sluice/policy"
)

// call is one call of Envoy: all limits of all its descriptors.
type call struct {
	shadow   bool // nothing is refused or told
	charged  charging.Call
	of       []int // by part of charged: its descriptor
	returned charging.Call
	to       []int          // by part of returned: its descriptor
	denied   []*policy.Rule // by descriptor: the rule whose deny lists it; nil: none

	asked   []*asked // what was decided; of shadows, what was given back alone
	refused *asked   // the one that refused; nil: none did
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
		part := charging.Part{Rule: rule, Request: req, Cost: cost(rule, req, d, hits)}
		if d.GetIsNegativeHits() {
			c.returned = append(c.returned, part)
			c.to = append(c.to, number)
			continue
		}
		c.charged = append(c.charged, part)
		c.of = append(c.of, number)
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
	all := slices.Concat(c.charged, c.returned)
	if len(all) == 0 {
		return nil
	}
	store, err := all.Store(stores)
	if err != nil {
		return err
	}
	if len(c.charged) > 0 {
		if err := c.charge(ctx, store); err != nil {
			return err
		}
	}
	if len(c.returned) > 0 {
		c.giveBack(ctx, store)
	}
	return nil
}

// charge charges limits together. Where one refuses, those after it, which the store has not looked at, are looked at for
// their status; all are where a rule refuses a descriptor for who it is.
func (c *call) charge(ctx context.Context, store sluice.Store) (err error) {
	var taken charging.Taken
	barred := !c.shadow && slices.ContainsFunc(c.denied, func(r *policy.Rule) bool { return r != nil })
	switch {
	case barred:
		taken = c.charged.Look(ctx, store)
	default:
		if taken, err = c.charged.Take(ctx, store); err != nil {
			return err
		}
		if taken.Allowed {
			c.charged.Pass(ctx, store, &taken) // nothing is settled: Envoy tells of no response
			break
		}
		taken.Look(ctx, store)
	}
	for i, ask := range taken.Asks {
		part, limit := c.charged.Limit(i)
		c.asked = append(c.asked, &asked{
			descriptor: c.of[part], rule: c.charged[part].Rule, limit: limit, ask: ask, decision: taken.Each[i],
		})
	}
	if !barred && !taken.Allowed {
		c.refused = c.asked[taken.Binding()]
	}
	return nil
}

// giveBack gives back what was charged of late: at the time that the store's clock shows now, since nobody says when it was
// charged. Each limit is by itself: taken together, a damaged key or a server that is away would keep all the others from
// it. What can't be given back in time stays charged; so does what was charged in an outage, which a guard takes for
// Redis's own. Shadows get theirs, too.
func (c *call) giveBack(ctx context.Context, store sluice.Store) {
	for i, part := range c.returned {
		for j := range part.Rule.Limits {
			limit := &part.Rule.Limits[j]
			a := &asked{descriptor: c.to[i], rule: part.Rule, limit: limit, ask: limit.Ask(part.Request, 0), refund: true}
			a.giveBack(ctx, store, part.Cost)
			c.asked = append(c.asked, a)
		}
	}
}

func (a *asked) giveBack(ctx context.Context, store sluice.Store, n int64) {
	ask := a.ask
	ask.Mode = sluice.Peek
	d, err := store.Take(ctx, ask)
	if err != nil {
		return
	}
	a.decision = d
	ask.Mode, ask.N, ask.At = sluice.Settle, -n, d.At
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
