package failover

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice"
)

// Guard returns a store that decides as primary does, and as fallback does while the breaker keeps calls away from
// primary or a call to it fails. It is a [sluice.Batcher], whether or not they are.
//
// With a fallback an outage is never an error: whatever keeps primary from deciding, and also when ctx's deadline
// has passed meanwhile, the fallback's decision is returned. Errors are the caller's own (a cancellation, ErrCost) or
// the fallback's. With a nil fallback primary's errors pass through, and while the breaker is open they are
// ErrUnavailable.
//
// State is carried both ways: the store that takes a key over is first charged, by Peek and UpTo, down to the
// fraction (Remaining / Limit) that the other had left, plus what has been regained since. So an outage, or many,
// hands out no fresh burst, and nothing is charged twice.
//
// A Settle goes to the store that made the charge. One for primary that comes while the breaker keeps calls away
// waits, and is sent once calls pass again. 1,024 wait at most, the oldest are dropped: what they would have given back
// stays charged. A Reset reaches both stores; primary hears of one that it missed when it takes the key over.
//
// The guard holds no goroutine of its own. primary must return by itself in bounded time, as store/redis does, since a
// call that never returns holds a probe's place.
func (b *Breaker) Guard(primary, fallback sluice.Store) sluice.Store {
	g := &guard{b: b, primary: primary, fallback: fallback, memory: newMemory()}
	switch fallback.(type) {
	case nil, AllowAll, *AllowAll, DenyAll, *DenyAll: // have no state to carry
	default:
		g.carries = true
	}
	return g
}

type guard struct {
	b                 *Breaker
	primary, fallback sluice.Store
	carries           bool
	memory            *memory
}

// Take decides one ask.
func (g *guard) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if err := a.Check(); err != nil {
		return sluice.Decision{}, err
	}
	if cancelled(ctx) {
		return sluice.Decision{}, ctx.Err()
	}
	h := g.hash(&a)
	switch a.Mode {
	case sluice.Settle:
		return g.settle(ctx, a, h)
	case sluice.Reset:
		return g.reset(ctx, a, h)
	}
	now := g.b.now()
	d, err, decided := g.askPrimary(ctx, &a, h, now)
	if decided {
		return d, err
	}
	if err != errOpen { // it took its time
		now = g.b.now()
	}
	return g.askFallback(ctx, &a, h, now)
}

// hash names the state of an ask; without a fallback nothing is remembered of it.
func (g *guard) hash(a *sluice.Ask) hash {
	if g.fallback == nil {
		return 0
	}
	return g.memory.hash(a)
}

// askPrimary asks the primary through the breaker; decided is false where the fallback is to decide.
func (g *guard) askPrimary(ctx context.Context, a *sluice.Ask, h hash, now int64) (d sluice.Decision, err error, decided bool) {
	if g.b.shut(now) {
		return d, errOpen, g.fallback == nil
	}
	asked, err := g.b.call(ctx, func() (err error) {
		if g.fallback != nil && a.Mode != sluice.Settle && a.Mode != sluice.Reset {
			if err := g.carryIn(ctx, a, h); err != nil {
				return err
			}
		}
		d, err = g.primary.Take(ctx, *a)
		return remembered(d.Source, err)
	})
	switch {
	case asked && err == nil:
		if d.Source != sluice.Cached {
			g.b.send()
		}
		if g.carries {
			g.memory.sawPrimary(h, &d, g.b.now())
		}
		return d, nil, true
	case asked:
		g.b.noteUnanswered(g.primary, *a)
	default:
		err = errOpen
	}
	err, decided = g.final(ctx, err)
	return sluice.Decision{}, err, decided
}

// remembered marks the success of a primary that has repeated an answer rather than asked for one.
func remembered(from sluice.Source, err error) error {
	if err == nil && from == sluice.Cached {
		return errRemembered
	}
	return err
}

// final returns an error as the caller is to see it, if it is to; else the fallback decides.
func (g *guard) final(ctx context.Context, err error) (error, bool) {
	if cancelled(ctx) {
		return ctx.Err(), true
	}
	return err, g.fallback == nil || errors.Is(err, sluice.ErrCost)
}

// askFallback asks the fallback, first carrying the state there.
func (g *guard) askFallback(ctx context.Context, a *sluice.Ask, h hash, now int64) (d sluice.Decision, err error) {
	err = g.outlive(ctx, func(ctx context.Context) error {
		if g.carries && a.Mode != sluice.Settle && a.Mode != sluice.Reset {
			if err := g.carryOut(ctx, a, h, now); err != nil {
				return err
			}
		}
		d, err = g.fallback.Take(ctx, *a)
		return err
	})
	if err != nil {
		return sluice.Decision{}, err
	}
	g.sawFallback(a, h, &d, now)
	return d, nil
}

// sawFallback remembers a decision of the fallback.
func (g *guard) sawFallback(a *sluice.Ask, h hash, d *sluice.Decision, now int64) {
	settles, carries := d.Charged > 0 && a.Mode != sluice.Settle, g.carries && d.Source != sluice.Assumed
	if settles || carries {
		g.memory.sawFallback(h, d, settles, carries, now)
	}
}

// outlive calls f, which asks the fallback, under ctx; where its deadline has passed or passes meanwhile, without it:
// the fallback's decision is worth more than a promptness that is lost already. A cancellation is the caller's wish.
func (g *guard) outlive(ctx context.Context, f func(context.Context) error) error {
	var err error
	if ctx.Err() == nil {
		if err = f(ctx); err == nil {
			return nil
		}
	}
	if cancelled(ctx) {
		return ctx.Err()
	}
	if ctx.Err() != nil {
		err = f(context.WithoutCancel(ctx))
	}
	if err != nil {
		return fmt.Errorf("failover: fallback: %w", err)
	}
	return nil
}
