package engine

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

// fleet decides for one lane while Redis is away: a store in each instance, from the level that Redis was left at. It
// lasts for one outage.
type fleet struct {
	now    int64 // µs: the clock of its stores
	share  float64
	stores []sluice.Store // by instance
}

// newFleet starts an outage.
func newFleet(l *lane, instances, now int64) *fleet {
	f := &fleet{share: 1, now: now}
	if l.shared {
		f.share = 1 / float64(instances)
	}
	for range instances {
		f.stores = append(f.stores, f.store(l.outage))
	}
	for subject := range l.keys {
		_, d := l.strategy.Take(l.live(subject, now).state, Origin+now, 0)
		for i := range f.stores {
			f.drain(i, l, subject, fraction(d))
		}
	}
	return f
}

func (f *fleet) store(outage string) sluice.Store {
	switch outage {
	case "allow":
		return failover.AllowAll{}
	case "deny":
		return failover.DenyAll{}
	}
	return local.NewBuckets(local.BucketsOptions{
		Clock: func() time.Time { return time.UnixMicro(Origin + f.now) },
		Share: func() float64 { return f.share },
	})
}

// take decides one request in one instance.
func (f *fleet) take(l *lane, a arrival, instance int) algorithm.Decision {
	instance %= len(f.stores) // fewer than before, if the user said so meanwhile
	f.now = a.at
	d, err := f.stores[instance].Take(context.Background(), ask(l, a.subject, a.n, sluice.Charge))
	if err != nil { // no store of these fails on asks of ours; if one did, it would be seen as a denial that never ends
		return algorithm.Decision{RetryAfter: algorithm.Never, Source: algorithm.Local}
	}
	d.At = Origin + a.at
	return d
}

// drain charges an instance's store down to a fraction of its limit, as package failover does at the turn of an
// outage. Stores that keep nothing stay as they are.
func (f *fleet) drain(instance int, l *lane, subject int, to float64) {
	d, err := f.peek(instance, l, subject)
	if err != nil || d.Source == sluice.Assumed {
		return
	}
	if n := above(d, to); n > 0 {
		_, _ = f.stores[instance].Take(context.Background(), ask(l, subject, n, sluice.UpTo)) // UpTo of a valid ask
	}
}

func (f *fleet) peek(instance int, l *lane, subject int) (algorithm.Decision, error) {
	return f.stores[instance].Take(context.Background(), ask(l, subject, 0, sluice.Peek))
}

// end is when Redis comes back: it is charged down to the least that any instance had left.
func (f *fleet) end(l *lane, at int64) {
	f.now = at
	for subject := range l.keys {
		left := 1.0
		for i := range f.stores {
			if d, err := f.peek(i, l, subject); err == nil && d.Source != sluice.Assumed {
				left = min(left, fraction(d))
			}
		}
		k := l.live(subject, at)
		_, d := l.strategy.Take(k.state, Origin+at, 0)
		if n := above(d, left); n > 0 {
			s, d := algorithm.UpTo(l.strategy, k.state, Origin+at, n)
			l.keep(k, s, at, d.ResetAfter)
		}
	}
}

// level is what the first client has spent in all instances, in units; no number where nothing is kept.
func (f *fleet) level(l *lane, at int64) float64 {
	f.now = at
	sum := 0.0
	for i := range f.stores {
		d, err := f.peek(i, l, 0)
		if err != nil || d.Source == sluice.Assumed {
			return math.NaN()
		}
		limit := l.strategy.Limit()
		sum += min(d.ResetAfter.Seconds()*f.share*float64(limit.Count)/limit.Period.Seconds(), float64(d.Limit))
	}
	return sum
}

// fraction is the part of a limit that a state has left.
func fraction(d algorithm.Decision) float64 { return float64(d.Remaining) / float64(max(d.Limit, 1)) }

// above is how many units must go until a fraction is left.
func above(d algorithm.Decision, to float64) int64 {
	if to >= 1 {
		return 0
	}
	return d.Remaining - int64(to*float64(d.Limit)+1e-9)
}

func ask(l *lane, subject int, n int64, mode sluice.Mode) sluice.Ask {
	key := sluice.Key{Rule: "play", Subject: strconv.Itoa(subject)}
	return sluice.Ask{Strategy: l.strategy, Key: key, N: n, Mode: mode}
}
