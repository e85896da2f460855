package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// AllowAll is fail-open: a store that lets every request pass and keeps nothing. Decisions have Source Assumed, and
// Remaining is the Limit. A negative cost is ErrCost, and a context that is done an error, as in any store.
type AllowAll struct{}

// DenyAll is fail-closed: a store that lets nothing pass, but a cost of 0, and keeps nothing. Decisions have Source
// Assumed, and RetryAfter is 1 s, or Never for a cost above the burst, which no wait will help. Settle and Reset are
// allowed and do nothing.
type DenyAll struct{}

// denyFor is the RetryAfter of DenyAll.
const denyFor = time.Second

// Take allows the ask.
func (AllowAll) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	d, err := assume(ctx, &a)
	if err == nil && (a.Mode == sluice.Charge || a.Mode == sluice.UpTo) {
		d.Charged = a.N
	}
	return d, err
}

// TakeAll allows all asks.
func (s AllowAll) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	return takeEach(ctx, s, asks)
}

// Take denies the ask, unless it costs nothing.
func (DenyAll) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	d, err := assume(ctx, &a)
	if err != nil || a.Mode == sluice.Settle || a.Mode == sluice.Reset {
		return d, err
	}
	limit := d.Limit
	d.Remaining, d.ResetAfter = 0, denyFor
	if a.N > 0 {
		d.Allowed, d.RetryAfter = false, denyFor
	}
	if a.N > limit {
		d.RetryAfter = sluice.Never
	}
	return d, nil
}

// TakeAll denies the first ask that costs something, and so all of them.
func (s DenyAll) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	return takeEach(ctx, s, asks)
}

// assume makes a Decision on no state: allowed, with nothing charged.
func assume(ctx context.Context, a *sluice.Ask) (sluice.Decision, error) {
	if err := a.Check(); err != nil {
		return sluice.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return sluice.Decision{}, done(ctx)
	}
	l := a.Strategy.Limit()
	most := l.Burst
	if most <= 0 {
		most = l.Count
	}
	return sluice.Decision{Allowed: true, Source: sluice.Assumed, Limit: most, Remaining: most, At: algorithm.Clock(time.Now())}, nil
}

// done is the error of a call whose context has ended.
func done(ctx context.Context) error {
	if cancelled(ctx) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded)
}

// takeEach takes asks in order from a store that keeps nothing, so that there is nothing to give back.
func takeEach(ctx context.Context, s sluice.Store, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	each := make([]sluice.Decision, len(asks))
	for i, a := range asks {
		d, err := s.Take(ctx, a)
		if err != nil {
			return sluice.Verdict{}, err
		}
		each[i] = d
		if !d.Allowed && (a.Mode == sluice.Charge || a.Mode == sluice.Peek) {
			return sluice.Refuse(asks, each, i), nil
		}
	}
	return sluice.Sum(each), nil
}
