package sluice

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Batcher is the optional part of a Store that decides several asks at once, all or none.
type Batcher interface {
	// TakeAll tries asks in order, each on the state that the ones before it left (a key may occur twice). A denied
	// Charge or Peek refuses the whole, and then nothing is written; UpTo and Settle never refuse; Reset is ErrCost.
	TakeAll(ctx context.Context, asks []Ask) (Verdict, error)
}

// Verdict is the answer to several asks. Its Decision sums them up: Allowed only if all are; Charged the total;
// Remaining the least, with the Limit of the ask that binds; RetryAfter, ResetAfter and Delay the greatest.
type Verdict struct {
	Decision
	Refused int        // index of the ask that binds, or -1
	Each    []Decision // one per ask. In a refused call: Charged 0, Allowed false for all; those after the refusing ask are not decided (Limit alone)
}

// TakeAll charges every ask or none. With a [Batcher] that is atomic as far as the store can make it; any other
// store is charged in order, and what was charged is given back on a refusal or an error. No asks are allowed.
func TakeAll(ctx context.Context, s Store, asks []Ask) (Verdict, error) {
	if err := CheckAll(asks); err != nil {
		return Verdict{}, err
	}
	if b, ok := s.(Batcher); ok {
		return b.TakeAll(ctx, asks)
	}
	return TakeInOrder(ctx, s, asks)
}

// CheckAll is [Ask.Check] for asks that are to be taken together, where Reset is ErrCost.
func CheckAll(asks []Ask) error {
	for i := range asks {
		a := &asks[i]
		if a.Mode == Reset {
			return fmt.Errorf("%w: ask %d: Reset can't be taken together with others", ErrCost, i)
		}
		if err := a.Check(); err != nil {
			return fmt.Errorf("ask %d: %w", i, err)
		}
	}
	return nil
}

// DecideAll runs asks in order on states that the caller has locked: kept[i] points to the state of ask i, and asks on
// one key share a pointer. It leaves the new states there, or, where an ask is refused, the old ones. It is pure but
// for that: for authors of stores.
func DecideAll(asks []Ask, kept []*algorithm.State, now int64, from Source) Verdict {
	each := make([]Decision, len(asks))
	before := make([]algorithm.State, len(asks))
	for i := range asks {
		a := &asks[i]
		before[i] = *kept[i]
		next, d := a.Decide(before[i], now)
		d.Source = from
		each[i] = d
		if d.Allowed || (a.Mode != Charge && a.Mode != Peek) {
			*kept[i] = next
			continue
		}
		for j := i; j >= 0; j-- {
			*kept[j] = before[j]
		}
		for j := range i + 1 { // as they stand with nothing charged
			_, as := asks[j].Strategy.Take(*kept[j], now, 0)
			each[j].Remaining, each[j].ResetAfter = as.Remaining, as.ResetAfter
		}
		return Refuse(asks, each, i)
	}
	return Sum(each)
}

// undoTime bounds the giving back of what a refused call had charged, also where the caller has gone.
const undoTime = time.Second

// TakeInOrder is [TakeAll] without a Batcher: for stores whose keys lie on several servers. Others may see, for a
// moment, what a refused call charged and then gave back.
func TakeInOrder(ctx context.Context, s Store, asks []Ask) (Verdict, error) {
	each := make([]Decision, len(asks))
	for i, a := range asks {
		d, err := s.Take(ctx, a)
		if err != nil {
			giveBack(ctx, s, asks[:i], each)
			return Verdict{}, err
		}
		each[i] = d
		if !d.Allowed && (a.Mode == Charge || a.Mode == Peek) {
			giveBack(ctx, s, asks[:i], each)
			return Refuse(asks, each, i), nil
		}
	}
	return Sum(each), nil
}

// giveBack undoes asks that were taken, last first, and adds to each what it gave back. An error leaves the charge:
// the safe side.
func giveBack(ctx context.Context, s Store, asks []Ask, each []Decision) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	for i := len(asks) - 1; i >= 0; i-- {
		undo := asks[i]
		switch undo.Mode {
		case Charge, UpTo:
			undo.N, undo.At = -each[i].Charged, each[i].At
		case Settle: // no more than it can have done: give back what was spent, or owe up to one burst
			l := undo.Strategy.Limit()
			burst := cmp.Or(l.Burst, l.Count)
			undo.N = -min(max(undo.N, -2*burst), burst)
		case Peek, Reset:
			continue
		}
		undo.Mode = Settle
		if undo.N == 0 {
			continue
		}
		if d, err := s.Take(ctx, undo); err == nil {
			each[i].Remaining, each[i].ResetAfter = d.Remaining, d.ResetAfter
		}
	}
}

// Sum makes the Verdict of a call that no ask refused: for authors of stores. An UpTo that got nothing refuses nothing,
// but is not allowed, so then the whole is not either, and Refused is -1.
func Sum(each []Decision) Verdict {
	v := Verdict{Refused: -1, Each: each}
	v.Allowed = true
	for i, d := range each {
		if i == 0 {
			v.Source, v.Limit, v.Remaining, v.At = d.Source, d.Limit, d.Remaining, d.At
		}
		if d.Remaining < v.Remaining {
			v.Limit, v.Remaining = d.Limit, d.Remaining
		}
		v.Allowed = v.Allowed && d.Allowed
		v.Charged += d.Charged
		v.include(d)
	}
	return v
}

// Refuse makes the Verdict of a call that ask number refused denied: for authors of stores. each holds the decisions
// up to that one, with Remaining and ResetAfter as they stand with nothing charged.
func Refuse(asks []Ask, each []Decision, refused int) Verdict {
	v := Verdict{Refused: refused, Each: each}
	v.Source, v.Limit, v.Remaining, v.At = each[refused].Source, each[refused].Limit, each[refused].Remaining, each[refused].At
	for i := range each {
		if i > refused {
			_, fresh := asks[i].Strategy.Take(algorithm.State{}, 0, 0)
			each[i] = Decision{Limit: fresh.Limit}
			continue
		}
		each[i].Allowed, each[i].Charged, each[i].Delay = false, 0, 0
		v.Remaining = min(v.Remaining, each[i].Remaining)
		v.include(each[i])
	}
	return v
}

func (v *Verdict) include(d Decision) {
	v.Source = max(v.Source, d.Source)
	v.RetryAfter = max(v.RetryAfter, d.RetryAfter)
	v.ResetAfter = max(v.ResetAfter, d.ResetAfter)
	v.Delay = max(v.Delay, d.Delay)
}
