package local

import (
	"context"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// TakeAll decides asks together, all or none, atomically: it holds the parts of all their keys while it decides.
func (s *Store) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	if ctx.Err() != nil {
		return sluice.Verdict{}, over(ctx)
	}
	if len(asks) == 0 {
		return sluice.Sum(nil), nil
	}
	now := s.clock.now()
	s.sweep(now)

	b := s.open(asks, now)
	defer b.close()
	kept := make([]*algorithm.State, len(asks))
	for i, p := range b.places {
		kept[i] = &p.value
	}
	v := sluice.DecideAll(asks, kept, now, sluice.Local)
	if v.Refused >= 0 {
		return v, nil
	}
	for i, a := range asks {
		if v.Each[i].Charged > 0 || a.Mode == sluice.Settle {
			b.places[i].last = i + 1
		}
	}
	b.commit(now, func(i int) time.Duration {
		_, left := asks[i].Strategy.Take(b.places[i].value, now, 0)
		return left.ResetAfter
	})
	return v, nil
}
