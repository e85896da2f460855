package failover

import (
	"context"
	"math"
	"time"

	"github.com/sluice-go/sluice"
)

// settle sends a Settle to the store that made the charge.
func (g *guard) settle(ctx context.Context, a sluice.Ask, h hash) (sluice.Decision, error) {
	if g.fallback == nil {
		d, err, _ := g.askPrimary(ctx, &a, h, g.b.now())
		return d, err
	}
	fallback, sure := g.memory.charger(h, a.At)
	switch {
	case fallback:
		return g.askFallback(ctx, &a, h, g.b.now())
	case !sure && a.N < 0: // it may be either's: the estimate stays charged
		return g.stand(ctx, &a)
	}
	d, err, decided := g.askPrimary(ctx, &a, h, g.b.now())
	if decided {
		return d, err
	}
	if err == errOpen { // not sent; one that was sent and failed may have been executed
		g.b.waiting.add(g.primary, a)
	}
	return g.stand(ctx, &a)
}

// reset forgets the state in both stores, so that neither carries it to the other.
func (g *guard) reset(ctx context.Context, a sluice.Ask, h hash) (sluice.Decision, error) {
	d, err, decided := g.askPrimary(ctx, &a, h, g.b.now())
	if g.fallback == nil || decided && err != nil {
		return d, err
	}
	now, wipe := g.b.now(), int64(0)
	if !decided {
		wipe = later(now, asNew(a.Strategy.Limit()))
	}
	g.memory.forget(h, now, wipe)
	local, failed := g.askFallback(ctx, &a, h, g.b.now())
	if decided {
		return d, nil
	}
	return local, failed
}

// asNew is how long any state of a limit takes to be as good as new, with one burst owed.
func asNew(l sluice.Limit) time.Duration {
	bursts := max(1, float64(l.Burst)/float64(max(1, l.Count)))
	return time.Duration(min(2*bursts*float64(l.Period), math.MaxInt64/2))
}

// stand answers an ask that is not executed now: how the fallback's state stands.
func (g *guard) stand(ctx context.Context, a *sluice.Ask) (d sluice.Decision, err error) {
	peek := sluice.Ask{Strategy: a.Strategy, Key: a.Key, Mode: sluice.Peek}
	err = g.outlive(ctx, func(ctx context.Context) error {
		d, err = g.fallback.Take(ctx, peek)
		return err
	})
	if err != nil {
		return sluice.Decision{}, err
	}
	return d, nil
}
