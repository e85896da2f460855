package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// fault is a way for a store to be wrong.
type fault struct {
	what  string
	found string // the case that is there to find it
	spoil func(r *reference)
}

// broken are stores with one fault each.
var broken = []fault{
	{"charges denials", "DenialChangesNothing", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			next, d := a.Decide(s, now)
			if a.Mode == sluice.Charge && !d.Allowed && d.RetryAfter != sluice.Never {
				next = a.Strategy.Adjust(s, now, a.N, now)
			}
			return next, d
		}
	}},
	{"ignores n < 0", "NegativeIsErrCost", func(r *reference) {
		r.check = func(a sluice.Ask) error { return nil }
	}},
	{"refills by n < 0", "NegativeIsErrCost", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.N < 0 {
				a.Mode = sluice.Settle
			}
			return a.Decide(s, now)
		}
		r.check = func(a sluice.Ask) error { return nil }
	}},
	{"charges n = 0 as 1", "ZeroIsFree", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.Mode == sluice.Charge {
				a.N = max(a.N, 1)
			}
			return a.Decide(s, now)
		}
	}},
	{"a finite wait above the burst", "AboveBurstIsNever", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now)
			if d.RetryAfter == sluice.Never {
				d.RetryAfter = time.Second
			}
			return s, d
		}
	}},
	{"joins the key's fields", "KeysDoNotCollide", func(r *reference) {
		right := r.id
		r.id = func(a sluice.Ask) id {
			x := right(a)
			x.key = sluice.Key{Rule: a.Key.Rule + ":" + a.Key.Subject}
			return x
		}
	}},
	{"cuts long keys", "KeysDoNotCollide", func(r *reference) {
		right := r.id
		r.id = func(a sluice.Ask) id {
			x := right(a)
			x.key.Subject = x.key.Subject[:min(128, len(x.key.Subject))]
			return x
		}
	}},
	{"repairs bytes that are no UTF-8", "KeysDoNotCollide", func(r *reference) {
		right := r.id
		r.id = func(a sluice.Ask) id {
			x := right(a)
			x.key.Subject = string([]rune(x.key.Subject))
			return x
		}
	}},
	{"one state for all algorithms", "AlgorithmsDoNotMeet", func(r *reference) {
		r.id = func(a sluice.Ask) id { return id{key: a.Key} }
	}},
	{"forgets usage on an edit", "EditedLimitKeepsUsage", func(r *reference) {
		right := r.id
		r.id = func(a sluice.Ask) id {
			x := right(a)
			x.more = a.Strategy.Limit().String()
			return x
		}
	}},
	{"a smaller limit cuts the words", "SmallerLimitClampsTheVerdictOnly", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			next, d := a.Decide(s, now)
			if a.Mode == sluice.Charge && !d.Allowed {
				next, _ = algorithm.UpTo(a.Strategy, algorithm.State{}, now, d.Limit)
			}
			return next, d
		}
	}},
	{"Peek charges", "PeekChargesNothing", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			next, d := a.Decide(s, now)
			if a.Mode == sluice.Peek {
				next, _ = a.Strategy.Take(s, now, a.N)
			}
			return next, d
		}
	}},
	{"Peek deducts N from Remaining", "PeekChargesNothing", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			next, d := a.Decide(s, now)
			if a.Mode == sluice.Peek && d.Allowed {
				d.Remaining -= a.N
			}
			return next, d
		}
	}},
	{"Peek makes a state", "UnseenKeysMakeNoState", func(r *reference) {
		r.store = func(id id, old, next algorithm.State) { r.states[id] = next }
	}},
	{"UpTo takes all or nothing", "UpToTakesWhatFits", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.Mode == sluice.UpTo {
				a.Mode = sluice.Charge
			}
			return a.Decide(s, now)
		}
	}},
	{"Settle gives nothing back", "SettleGivesBack", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.Mode == sluice.Settle {
				a.N = max(a.N, 0)
			}
			return a.Decide(s, now)
		}
	}},
	{"Settle forgives what does not fit", "SettleOwes", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.Mode == sluice.Settle && a.N > 0 {
				_, left := a.Strategy.Take(s, now, 0)
				a.N = min(a.N, left.Remaining)
			}
			return a.Decide(s, now)
		}
	}},
	{"Reset forgets all algorithms", "ResetForgets", func(r *reference) {
		right := r.store
		r.store = func(x id, old, next algorithm.State) {
			right(x, old, next)
			if next == (algorithm.State{}) {
				for other := range r.states {
					if other.key == x.key {
						delete(r.states, other)
					}
				}
			}
		}
	}},
	{"a refused TakeAll keeps what it charged", "TakeAllRefuses", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			if err := sluice.CheckAll(asks); err != nil {
				return sluice.Verdict{}, err
			}
			each := make([]sluice.Decision, len(asks))
			for i, a := range asks {
				var err error
				if each[i], err = r.Take(ctx, a); err != nil {
					return sluice.Verdict{}, err
				}
				if !each[i].Allowed && a.Mode != sluice.UpTo {
					return sluice.Refuse(asks, each, i), nil
				}
			}
			return sluice.Sum(each), nil
		}
	}},
	{"TakeAll asks each on the state before the call", "TakeAllOnOneKey", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			if err := sluice.CheckAll(asks); err != nil {
				return sluice.Verdict{}, err
			}
			each := make([]sluice.Decision, len(asks))
			for i, a := range asks {
				if a.Mode == sluice.Charge {
					a.Mode = sluice.Peek
				}
				d, err := r.Take(ctx, a)
				if err != nil {
					return sluice.Verdict{}, err
				}
				if each[i] = d; !d.Allowed && a.Mode == sluice.Peek {
					return sluice.Refuse(asks, each, i), nil
				}
			}
			for i, a := range asks {
				if a.Mode == sluice.Charge {
					each[i], _ = r.Take(ctx, a)
				}
			}
			return sluice.Sum(each), nil
		}
	}},
	{"UpTo refuses a TakeAll", "TakeAllUpToAndSettle", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			v, err := r.allOrNone(ctx, asks)
			if i := slices.IndexFunc(v.Each, func(d sluice.Decision) bool { return !d.Allowed }); err == nil && i >= 0 && v.Refused < 0 {
				return sluice.Refuse(asks, v.Each, i), nil
			}
			return v, err
		}
	}},
	{"TakeAll resets", "TakeAllErrCost", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			if slices.ContainsFunc(asks, func(a sluice.Ask) bool { return a.Mode == sluice.Reset }) {
				return sluice.TakeInOrder(ctx, sluice.StoreFunc(r.Take), asks)
			}
			return r.allOrNone(ctx, asks)
		}
	}},
	{"reads and writes apart", "ManyClientsAreExact", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			r.mu.Unlock()
			runtime.Gosched()
			r.mu.Lock()
			return a.Decide(s, now)
		}
	}},
	{"TakeAll is seen half done", "ManyTakeAllsAreExact", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			if err := sluice.CheckAll(asks); err != nil {
				return sluice.Verdict{}, err
			}
			slow := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
				runtime.Gosched()
				return r.Take(ctx, a)
			})
			return sluice.TakeInOrder(ctx, slow, asks)
		}
	}},
	{"decides for those who have gone", "Cancelled", func(r *reference) {
		r.done = func(context.Context) error { return nil }
	}},
	{"a cancellation looks like an outage", "Cancelled", func(r *reference) {
		r.done = func(ctx context.Context) error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
			}
			return nil
		}
	}},
	{"a deadline is an error of its own", "DeadlineHolds", func(r *reference) {
		r.done = func(ctx context.Context) error {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return sluice.ErrUnavailable
			}
			return ctx.Err()
		}
	}},
	{"At in ms", "AtIsTheStoresClock", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now)
			d.At /= 1000
			return s, d
		}
	}},
	{"RetryAfter in whole seconds, rounded down", "RetryAfterIsExact", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now)
			if d.RetryAfter != sluice.Never && d.RetryAfter > time.Second {
				d.RetryAfter = d.RetryAfter.Truncate(time.Second)
			}
			return s, d
		}
	}},
	{"forgets after a second", "ResetAfterLeadsToFresh", func(r *reference) {
		wrote := map[id]int64{}
		right := r.store
		r.store = func(x id, old, next algorithm.State) {
			if old != next {
				wrote[x] = r.now()
			}
			right(x, old, next)
		}
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if now-wrote[r.id(a)] > 1_000_000 {
				s = algorithm.State{}
			}
			return a.Decide(s, now)
		}
	}},
	{"drops by the last limit asked", "KeptUntilItEnds", func(r *reference) {
		end := map[id]int64{}
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if now >= end[r.id(a)] {
				s = algorithm.State{}
			}
			s, d := a.Decide(s, now)
			end[r.id(a)] = ends(d)
			return s, d
		}
	}},
	{"cuts time to seconds", "Refill", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now-now%7_000_000)
			d.At = now
			return s, d
		}
	}},
	{"a denial moves the time on", "PollingDoesNotDelay", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			next, d := a.Decide(s, now)
			if !d.Allowed && s[1] > 0 && s[1] < now {
				next[1] = now
			}
			return next, d
		}
	}},
	{"windows start at the first request", "WindowEdges", func(r *reference) {
		first := map[id]int64{}
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if _, seen := first[r.id(a)]; !seen {
				first[r.id(a)] = now % a.Strategy.Limit().Period.Microseconds()
			}
			s, d := a.Decide(s, now-first[r.id(a)])
			d.At = now
			return s, d
		}
	}},
	{"an ended window gives back", "EndedWindowGivesNothingBack", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.Mode == sluice.Settle {
				a.At = now
			}
			return a.Decide(s, now)
		}
	}},
	{"forgets when the clock steps back", "ClockStepsBack", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if s[1] > now || s[2] > now {
				s = algorithm.State{}
			}
			return a.Decide(s, now)
		}
	}},
	{"no time before 1970", "ClockAtTheEpoch", func(r *reference) {
		right := r.now
		r.now = func() int64 { return max(1, right()) }
	}},
	{"no delays", "LeakyDelays", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now)
			d.Delay = 0
			return s, d
		}
	}},
	{"says Shared for Local", "AllowThenDeny", func(r *reference) { r.source = sluice.Shared }},
	{"compares numbers as text", "ExactLimit", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			next, d := a.Decide(s, now)
			if _, left := a.Strategy.Take(s, now, 0); d.Allowed && fmt.Sprint(a.N) > fmt.Sprint(left.Remaining) {
				return s, sluice.Decision{Limit: d.Limit, Remaining: left.Remaining, RetryAfter: 1, ResetAfter: 1, At: now}
			}
			return next, d
		}
	}},
	{"ResetAfter in the wrong unit", "Bounds", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now)
			d.ResetAfter *= 10
			return s, d
		}
	}},
	{"gives back without a lock", "ManyRefundsAreExact", func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if a.Mode == sluice.Settle {
				r.mu.Unlock()
				runtime.Gosched()
				r.mu.Lock()
			}
			return a.Decide(s, now)
		}
	}},
	{"waits as long as under the old limit", "EditedRate", func(r *reference) {
		first := map[id]sluice.Strategy{}
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			x := r.id(a)
			if first[x] == nil {
				first[x] = a.Strategy
			}
			old := a
			old.Strategy = first[x]
			_, d := old.Decide(s, now)
			retry := d.RetryAfter
			s, d = a.Decide(s, now)
			if !d.Allowed && retry > 0 {
				d.RetryAfter = retry
			}
			return s, d
		}
	}},
	{"each key has windows of its own", "KeysHaveOneGrid", func(r *reference) {
		first := map[id]int64{}
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			if _, seen := first[r.id(a)]; !seen {
				first[r.id(a)] = now % a.Strategy.Limit().Period.Microseconds()
			}
			s, d := a.Decide(s, now-first[r.id(a)])
			d.At = now
			return s, d
		}
	}},
	{"RetryAfter twice as long as need be", waiting, func(r *reference) {
		r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
			s, d := a.Decide(s, now)
			if !d.Allowed {
				d.RetryAfter = 100 * time.Millisecond
			}
			return s, d
		}
	}},
	{"TakeAll tells the greatest Remaining", "TakeAllChargesAll", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			v, err := r.allOrNone(ctx, asks)
			for _, d := range v.Each {
				v.Remaining = max(v.Remaining, d.Remaining)
			}
			return v, err
		}
	}},
	{"TakeAll denies nothing at all", "TakeAllOfNothing", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			if len(asks) == 0 {
				return sluice.Verdict{}, nil
			}
			return r.allOrNone(ctx, asks)
		}
	}},
	{"TakeAll forgets asks beyond the 16th", "TakeAllOfMany", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			v, err := r.allOrNone(ctx, asks[:min(16, len(asks))])
			for len(v.Each) < len(asks) && len(v.Each) > 0 {
				v.Each = append(v.Each, v.Each[0])
			}
			return v, err
		}
	}},
	{"TakeAll tells the first Delay", "TakeAllDelay", func(r *reference) {
		r.all = func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
			v, err := r.allOrNone(ctx, asks)
			if len(v.Each) > 0 {
				v.Delay = v.Each[0].Delay
			}
			return v, err
		}
	}},
}
