package local

import (
	"context"
	"time"

	"github.com/sluice-go/sluice"
)

// TakeAll decides asks together, all or none, atomically: it holds the parts of all their keys while it decides.
func (s *Buckets) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
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
	b := bucketBatch{s.open(asks, now)}
	defer b.close()
	for _, p := range b.places {
		switch {
		case p.value == nil:
			p.value = new(bucket)
		case p.entry != nil && now >= p.entry.expires: // as in Take
			p.value.refill(now)
		}
	}
	return b.take(asks, s.shareNow(), now)
}

// bucketBatch is the buckets of several asks, locked.
type bucketBatch struct{ *batch[*bucket] }

// take decides all asks in order, and takes back what it took if one is denied.
func (b bucketBatch) take(asks []sluice.Ask, share float64, now int64) (sluice.Verdict, error) {
	each, moved := make([]sluice.Decision, len(asks)), make([]int64, len(asks))
	for i := range asks {
		a := &asks[i]
		if err := b.places[i].value.shape(a.Strategy, share, now); err != nil {
			b.undo(i, moved, now)
			return sluice.Verdict{}, err
		}
		each[i], moved[i] = b.places[i].value.decide(a, now)
		if each[i].Allowed || (a.Mode != sluice.Charge && a.Mode != sluice.Peek) {
			continue
		}
		b.undo(i, moved, now)
		for j := range i + 1 { // as they stand with nothing charged
			as := b.look(j, asks, share, now)
			each[j].Remaining, each[j].ResetAfter = as.Remaining, as.ResetAfter
		}
		v := sluice.Refuse(asks, each, i)
		for j := i + 1; j < len(asks); j++ {
			v.Each[j].Limit = b.look(j, asks, share, now).Limit
		}
		return v, nil
	}
	for i, n := range moved {
		if n != 0 {
			b.places[i].last = i + 1
		}
	}
	b.commit(now, func(i int) time.Duration { return b.look(i, asks, share, now).ResetAfter })
	return sluice.Sum(each), nil
}

// look is how the bucket of ask i stands, for that ask's strategy.
func (b bucketBatch) look(i int, asks []sluice.Ask, share float64, now int64) sluice.Decision {
	a := sluice.Ask{Strategy: asks[i].Strategy, Mode: sluice.Peek}
	if b.places[i].value.shape(a.Strategy, share, now) != nil {
		return sluice.Decision{}
	}
	d, _ := b.places[i].value.decide(&a, now)
	return d
}

// undo takes back what the first n asks moved, last first.
func (b bucketBatch) undo(n int, moved []int64, now int64) {
	for i := n - 1; i >= 0; i-- {
		b.places[i].value.undo(moved[i], now)
	}
}
