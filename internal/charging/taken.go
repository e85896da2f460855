package charging

import (
	"context"

	"github.com/sluice-go/sluice"
)

// Taken is what a call's limits were asked, and what they answered.
type Taken struct {
	Asks []sluice.Ask // of the limits that are no shadows, in order; [Call.Limit] tells whose they are
	sluice.Verdict
}

// Take charges all limits of the call that are no shadows with one [sluice.TakeAll], or none where one refuses. A call
// of shadows alone is allowed, and the store isn't asked.
func (c Call) Take(ctx context.Context, store sluice.Store) (Taken, error) {
	t := Taken{Asks: c.asks()}
	if len(t.Asks) == 0 {
		t.Verdict = sluice.Sum(nil)
		return t, nil
	}
	var err error
	t.Verdict, err = sluice.TakeAll(ctx, store, t.Asks)
	return t, err
}

// Binding is the number of the ask that refused. The call has been refused.
func (t *Taken) Binding() int { return min(max(t.Refused, 0), len(t.Asks)-1) } // a foreign store may name none

// Look asks about all limits of the call that are no shadows and charges nothing: for the status of a call that is
// refused for another reason. See [Taken.Look].
func (c Call) Look(ctx context.Context, store sluice.Store) Taken {
	t := Taken{Asks: c.asks()}
	t.Verdict = sluice.Verdict{Refused: -1, Each: make([]sluice.Decision, len(t.Asks))}
	look(ctx, store, t.Asks, t.Each)
	return t
}

// Look asks about those limits of a refused call that come after the one that refused, which had not been looked at, and
// charges nothing. Those of Each that would refuse then have a RetryAfter; Allowed is false in all. It is one call of the
// store, and one more for each limit that would refuse and has others behind it. What can't be decided in time stays
// undecided. The verdict's own Decision is that of the refusal.
func (t *Taken) Look(ctx context.Context, store sluice.Store) {
	if t.Allowed {
		return
	}
	next := t.Binding() + 1
	each := make([]sluice.Decision, len(t.Asks))
	copy(each, t.Each)
	t.Each = each
	look(ctx, store, t.Asks[next:], each[next:])
}

// look peeks at asks together, and again behind each that refuses.
func look(ctx context.Context, store sluice.Store, asks []sluice.Ask, each []sluice.Decision) {
	peeks := make([]sluice.Ask, len(asks))
	for i, a := range asks {
		a.Mode = sluice.Peek
		peeks[i] = a
	}
	for len(peeks) > 0 {
		v, err := sluice.TakeAll(ctx, store, peeks)
		if err != nil {
			return
		}
		seen := len(peeks)
		if v.Refused >= 0 {
			seen = min(v.Refused+1, seen)
		}
		for i := range min(seen, len(v.Each)) {
			v.Each[i].Allowed = false
			each[i] = v.Each[i]
		}
		peeks, each = peeks[seen:], each[seen:]
	}
}
