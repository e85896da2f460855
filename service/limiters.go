package service

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// limiters are those of a reading of the file. They stay the same while overrides change, so that those who wait on one
// wait in one queue.
type limiters struct {
	byName map[limiterName]*sluice.Limiter
	stores map[string]*overriding // by Key.Rule
}

// limiterName names a limit; limit is "" for the one limit of a rule.
type limiterName struct{ rule, limit string }

func newLimiters(rules *policy.Rules, stores map[policy.OnOutage]sluice.Store, now func() time.Time) *limiters {
	ls := &limiters{byName: map[limiterName]*sluice.Limiter{}, stores: map[string]*overriding{}}
	for _, rule := range rules.All() {
		for _, limit := range rule.Limits {
			st := &overriding{to: stores[rule.OnOutage], now: now}
			l := sluice.New(st, limit.Strategy, limit.KeyRule)
			ls.stores[limit.KeyRule] = st
			ls.byName[limiterName{rule.Name, limit.Name}] = l
			if limit.KeyRule == rule.Name { // the one that refuses
				ls.byName[limiterName{rule.Name, ""}] = l
			}
		}
	}
	return ls
}

// follow takes the overrides of rules, which are of the same reading of the file.
func (ls *limiters) follow(rules *policy.Rules) {
	config := rules.Config()
	for i, rule := range rules.All() {
		for j := range rule.Limits {
			limit := &rule.Limits[j]
			if len(config.Rules[i].Limits[j].Overrides) == 0 {
				limit = nil
			}
			ls.stores[rule.Limits[j].KeyRule].limit.Store(limit)
		}
	}
}

// overriding is a store whose subjects may have other limits than they are asked about with.
type overriding struct {
	to    sluice.Store
	limit atomic.Pointer[policy.Limit] // nil: no subject has
	now   func() time.Time
}

func (o *overriding) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if limit := o.limit.Load(); limit != nil {
		o.override(limit, &a)
	}
	return o.to.Take(ctx, a)
}

func (o *overriding) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if limit := o.limit.Load(); limit != nil {
		own := make([]sluice.Ask, len(asks)) // the caller's stay as they are
		for i, a := range asks {
			if a.Key.Rule == limit.KeyRule {
				o.override(limit, &a)
			}
			own[i] = a
		}
		asks = own
	}
	return sluice.TakeAll(ctx, o.to, asks)
}

// override leaves a subject without an override what it is asked about with, which may be a plan's (Limiter.With).
func (o *overriding) override(limit *policy.Limit, a *sluice.Ask) {
	if st := limit.StrategyFor(a.Key.Subject, o.now()); st != limit.Strategy { // pointers, both of package policy
		a.Strategy = st
	}
}
