package failover

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice"
)

// TakeAll decides asks together, all or none, by one of the two stores.
func (g *guard) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	if cancelled(ctx) {
		return sluice.Verdict{}, ctx.Err()
	}
	if len(asks) == 0 {
		return sluice.Sum(nil), nil
	}
	hashes := make([]hash, len(asks))
	for i := range asks {
		hashes[i] = g.hash(&asks[i])
	}
	v, err, decided := g.allPrimary(ctx, asks, hashes)
	if decided {
		return v, err
	}
	return g.allFallback(ctx, asks, hashes, err != errOpen)
}

func (g *guard) allPrimary(ctx context.Context, asks []sluice.Ask, hashes []hash) (v sluice.Verdict, err error, decided bool) {
	if g.b.shut(g.b.now()) {
		return v, errOpen, g.fallback == nil
	}
	own, others := g.split(asks, hashes, false)
	asked, err := g.b.call(ctx, func() (err error) {
		for i := range asks {
			if g.fallback != nil && asks[i].Mode != sluice.Settle {
				if err := g.carryIn(ctx, &asks[i], hashes[i]); err != nil {
					return err
				}
			}
		}
		v, err = sluice.TakeAll(ctx, g.primary, own)
		return remembered(v.Source, err)
	})
	switch {
	case asked && err == nil:
		if v.Source != sluice.Cached {
			g.b.send()
		}
		if g.carries {
			now := g.b.now()
			for i := range decidedOf(&v) {
				g.memory.sawPrimary(hashes[i], &v.Each[i], now)
			}
		}
		if v.Refused < 0 {
			for _, i := range others {
				if _, err := g.settle(ctx, asks[i], hashes[i]); err != nil {
					return v, err, true
				}
			}
		}
		return v, nil, true
	case asked:
		g.b.noteUnanswered(g.primary, asks...)
	default:
		err = errOpen
	}
	err, decided = g.final(ctx, err)
	return sluice.Verdict{}, err, decided
}

// allFallback asks the fallback. sent: the primary was sent the asks, and may have executed its Settles.
func (g *guard) allFallback(ctx context.Context, asks []sluice.Ask, hashes []hash, sent bool) (v sluice.Verdict, err error) {
	own, others := g.split(asks, hashes, true)
	now := g.b.now()
	err = g.outlive(ctx, func(ctx context.Context) error {
		for i := range asks {
			if g.carries && asks[i].Mode != sluice.Settle {
				if err := g.carryOut(ctx, &asks[i], hashes[i], now); err != nil {
					return err
				}
			}
		}
		v, err = sluice.TakeAll(ctx, g.fallback, own)
		return err
	})
	if err != nil {
		return sluice.Verdict{}, err
	}
	for i := range decidedOf(&v) {
		g.sawFallback(&asks[i], hashes[i], &v.Each[i], now)
	}
	if v.Refused < 0 && !sent {
		for _, i := range others {
			g.b.waiting.add(g.primary, asks[i])
		}
	}
	return v, nil
}

// decidedOf is the decisions of a verdict that were made.
func decidedOf(v *sluice.Verdict) []sluice.Decision {
	if v.Refused >= 0 {
		return v.Each[:v.Refused+1]
	}
	return v.Each
}

// split returns the asks for one of the stores: all of them, but Settles that are the other's, or may be, stand
// there as a Peek of nothing, which changes nothing and never refuses. others are the numbers of those that are surely
// the other's, or, where they are owed, may be.
func (g *guard) split(asks []sluice.Ask, hashes []hash, fallback bool) (own []sluice.Ask, others []int) {
	own = asks
	if g.fallback == nil {
		return own, nil
	}
	for i, a := range asks {
		if a.Mode != sluice.Settle {
			continue
		}
		theirs, sure := g.memory.charger(hashes[i], a.At)
		switch {
		case theirs == fallback && (sure || a.N >= 0):
			continue
		case sure || a.N >= 0:
			others = append(others, i)
		}
		if &own[0] == &asks[0] {
			own = slices.Clone(asks)
		}
		own[i].Mode, own[i].N = sluice.Peek, 0
	}
	return own, others
}
