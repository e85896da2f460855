package gateway

import (
	"context"
	"net/http"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
)

// call is one call of Envoy: all limits of all its descriptors.
type call struct {
	shadow  bool // nothing is refused or told
	asked   []*asked
	denied  []*policy.Rule // by descriptor: the rule whose deny lists it; nil: none
	refused *asked         // the first that refused; nil: none did
}

// asked is one limit of one descriptor.
type asked struct {
	descriptor int
	rule       *policy.Rule
	limit      *policy.Limit
	limiter    *sluice.Limiter
	subject    string
	n          int64
	refund     bool

	decision sluice.Decision
}

// maxHits is the most that Envoy's API lets a call add.
const maxHits = 1_000_000_000

// add adds a descriptor.
func (c *call) add(limits *service.Service, rules *policy.Rules, d *common.RateLimitDescriptor, hits uint32) error {
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
		for i := range rule.Limits {
			l := &rule.Limits[i]
			limiter, ok := limits.Limiter(rule.Name, l.Name)
			if !ok { // between two readings of the file
				return status.Error(codes.Unavailable, "gateway: the rules have just changed")
			}
			c.asked = append(c.asked, &asked{
				descriptor: number, rule: rule, limit: l, limiter: limiter, subject: l.Subject(req),
				n: cost(rule, req, d, hits), refund: d.GetIsNegativeHits(),
			})
		}
	}
	return nil
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

// decide asks all limits, and gives back what they charged where one refuses. Shadows are asked of calls that pass.
func (c *call) decide(ctx context.Context) error {
	barred := false
	for _, rule := range c.denied {
		barred = barred || rule != nil && !c.shadow
	}
	var charged []*asked
	for _, a := range c.asked {
		if a.refund || a.limit.Shadow {
			continue
		}
		if barred || c.refused != nil {
			if err := a.peek(ctx); err != nil {
				return err
			}
			continue
		}
		var err error
		if a.decision, err = a.limiter.AllowN(ctx, a.subject, a.n); err != nil {
			giveBack(ctx, charged)
			return err
		}
		if a.decision.Allowed {
			charged = append(charged, a)
			continue
		}
		c.refused = a
		giveBack(ctx, charged)
	}
	for _, a := range c.asked {
		switch {
		case a.refund:
			a.giveIn(ctx)
		case a.limit.Shadow && c.refused == nil && !barred:
			_, _ = a.limiter.AllowN(ctx, a.subject, a.n) // for the store's observer
		}
	}
	return nil
}

func (a *asked) peek(ctx context.Context) (err error) {
	a.decision, err = a.limiter.Peek(ctx, a.subject, a.n)
	return err
}

// giveBack undoes charges, last first. An error leaves the charge: the safe side.
func giveBack(ctx context.Context, charged []*asked) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	for i := len(charged) - 1; i >= 0 && ctx.Err() == nil; i-- {
		a := charged[i]
		if a.limiter.Refund(ctx, a.subject, a.decision) == nil {
			a.decision.Remaining = min(a.decision.Remaining+a.decision.Charged, a.decision.Limit)
		}
	}
}

// giveIn gives back n units of what was charged of late: at the time that the store's clock shows now. What can't be
// given back in time stays charged.
func (a *asked) giveIn(ctx context.Context) {
	d, err := a.limiter.Peek(ctx, a.subject, 0)
	if err != nil {
		return
	}
	a.decision = d
	if ctx.Err() != nil || a.n == 0 {
		return
	}
	if a.limiter.Refund(ctx, a.subject, sluice.Decision{Charged: a.n, At: d.At}) != nil {
		return
	}
	if d, err = a.limiter.Peek(ctx, a.subject, 0); err == nil {
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
