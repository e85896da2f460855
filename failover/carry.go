package failover

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// errBusy is how a call to the primary ends whose state is just being carried there: the fallback decides meanwhile.
var errBusy = errors.New("failover: the state is being carried to the primary")

// carryTime bounds a wait for another call that carries a state to the fallback.
const carryTime = time.Second

// carryIn charges the primary down to what the fallback had left of a's state, if the fallback decided last; a Reset
// that it missed comes before that. It is part of a call that the breaker counts.
func (g *guard) carryIn(ctx context.Context, a *sluice.Ask, h hash) (err error) {
	if g.memory.away.Load() == 0 {
		return nil
	}
	l, carry, moving := g.memory.claim(h, false, g.b.now())
	if moving != nil {
		return errBusy
	}
	if !carry {
		return nil
	}
	ok := false
	defer func() { g.memory.moved(h, false, ok) }()
	if l.wipe {
		if _, err := g.primary.Take(ctx, sluice.Ask{Strategy: a.Strategy, Key: a.Key, Mode: sluice.Reset}); err != nil {
			return err
		}
	}
	err = drain(ctx, g.primary, a, l.now(a.Strategy, g.b.now()))
	ok = err == nil
	return err
}

// carryOut charges the fallback down to what the primary had left of a's state, if the primary decided last. Where
// another call is at that, it waits.
func (g *guard) carryOut(ctx context.Context, a *sluice.Ask, h hash, now int64) error {
	l, carry, moving := g.memory.claim(h, true, now)
	if moving != nil {
		return g.await(ctx, h, moving)
	}
	if !carry {
		return nil
	}
	ok := false
	defer func() { g.memory.moved(h, true, ok) }()
	err := drain(ctx, g.fallback, a, l.now(a.Strategy, now))
	ok = err == nil
	return err
}

// await waits until a carrying ends. One to the primary is not waited for: until it has ended, the fallback owns the
// state.
func (g *guard) await(ctx context.Context, h hash, moving <-chan struct{}) error {
	if g.memory.owner(h) {
		return nil
	}
	t := time.NewTimer(carryTime)
	defer t.Stop()
	select {
	case <-moving:
	case <-ctx.Done():
	case <-t.C:
	}
	return nil
}

// drain charges a store, by asks alone, down to a fraction of its limit. It is idempotent: what is charged already is
// not charged again.
func drain(ctx context.Context, s sluice.Store, a *sluice.Ask, fraction float64) error {
	if fraction >= 1 {
		return nil
	}
	ask := sluice.Ask{Strategy: a.Strategy, Key: a.Key, Mode: sluice.Peek}
	d, err := s.Take(ctx, ask)
	if err != nil || d.Source == sluice.Assumed {
		return err
	}
	ask.N = d.Remaining - int64(fraction*float64(d.Limit)+1e-9)
	if ask.N <= 0 {
		return nil
	}
	ask.Mode = sluice.UpTo
	_, err = s.Take(ctx, ask)
	return err
}

// now is the fraction that has been regained by now: by Count per Period where that flows steadily, and nothing
// where it comes at once, at the end of a window. Past reset it is 1.
func (l left) now(st sluice.Strategy, now int64) float64 {
	if now >= l.reset {
		return 1
	}
	limit := st.Limit()
	if limit.Burst <= 0 || limit.Period <= 0 || window(st, limit) {
		return l.fraction
	}
	perNano := float64(limit.Count) / float64(limit.Burst) / float64(limit.Period)
	if l.fraction <= 0 { // maybe in debt, which is paid off first
		return max(0, 1-float64(l.reset-now)*perNano)
	}
	return min(1, l.fraction+float64(now-l.at)*perNano)
}

// window tells whether what a strategy regains depends on the time of day.
func window(st sluice.Strategy, l sluice.Limit) bool {
	p := int64(l.Period / time.Microsecond)
	_, start := st.Take(algorithm.State{}, p, 1)
	_, midway := st.Take(algorithm.State{}, p+p/2, 1)
	return start.ResetAfter != midway.ResetAfter
}
