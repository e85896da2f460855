package local

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// bucket is one key's share of a limit, locked by its holder. The zero bucket takes its shape at first use, full.
//
// x/time/rate has traps, and this is the one place that knows them: a time before the last credits twice (so times are
// clamped), a negative n refills (used to give back, once clamped), Cancel leaks (never called), and a limit that is
// no number admits all (refused by shape).
type bucket struct {
	limiter rate.Limiter
	limit   algorithm.Limit // as it was shaped for
	share   float64
	rate    float64 // units a second
	burst   int64   // what it holds
	whole   int64   // what it would hold with a share of 1
	last    int64   // µs: when it was last changed
	queue   bool    // of a leaky bucket: answers carry a Delay
	window  bool    // of a window: what has ended gets nothing back
}

// forever is the longest wait that is told, short of Never: 146 years.
const forever = time.Duration(1) << 62

// shape makes the bucket one of st's limit times share. What was spent stays spent: in units where the limit was
// edited, in parts of the bucket where the share has changed. Rounding is to the strict side, by less than a unit.
func (b *bucket) shape(st sluice.Strategy, share float64, now int64) error {
	l := st.Limit()
	if l == b.limit && share == b.share {
		return nil
	}
	if err := l.Check("local: Buckets"); err != nil {
		return err
	}
	was, at := b.share, time.UnixMicro(max(now, b.last))
	spent, debt := 0.0, 0.0
	if was > 0 {
		tokens := b.limiter.TokensAt(at)
		spent, debt = float64(b.burst)-max(tokens, 0), max(-tokens, 0)
	}
	if l != b.limit {
		b.queue, b.window = manners(st, l)
	}
	b.limit, b.share, b.whole = l, share, wholeBurst(l)
	b.rate = share * float64(l.Count) / l.Period.Seconds()
	b.burst = max(1, int64(share*float64(b.whole)))

	b.fill(at)
	if was > 0 {
		spent, debt = min(spent*share/was, float64(b.burst)), min(debt*share/was, float64(b.whole))
		b.spend(at, int64(math.Ceil(spent+debt-1e-9)))
	}
	return nil
}

// fill gives the limiter the bucket's rate and burst, and makes it full.
func (b *bucket) fill(at time.Time) {
	b.limiter.SetLimitAt(at, rate.Limit(b.rate))
	b.limiter.SetBurstAt(at, whole(b.burst))
	if missing := float64(b.burst) - b.limiter.TokensAt(at); missing > 0 {
		b.limiter.AllowN(at, whole(-int64(math.Ceil(missing))))
	}
	b.limiter.SetBurstAt(at, whole(b.burst)) // no more than full
}

// manners finds out what a strategy is like by asking it: it is a queue if the second of two units at one time is
// delayed, and a window if what is regained depends on the time of day.
func manners(st sluice.Strategy, l algorithm.Limit) (queue, window bool) {
	p := int64(l.Period / time.Microsecond)
	s, first := st.Take(algorithm.State{}, p, 1)
	_, second := st.Take(s, p, 1)
	_, midway := st.Take(algorithm.State{}, p+p/2, 1)
	return second.Delay > 0, midway.ResetAfter != first.ResetAfter
}

// decide runs any ask but what a Reset forgets, and returns by how many units the bucket fell (below 0: rose).
func (b *bucket) decide(a *sluice.Ask, now int64) (d sluice.Decision, moved int64) {
	t := max(now, b.last)
	at, lag := time.UnixMicro(t), time.Duration(t-now)*time.Microsecond
	tokens := b.limiter.TokensAt(at)
	d = sluice.Decision{Allowed: true, Source: sluice.Local, Limit: b.burst, At: now}
	switch a.Mode {
	case sluice.Charge, sluice.UpTo:
		n := a.N
		d.Allowed = b.passes(tokens, n)
		if left := b.remaining(tokens); !d.Allowed && a.Mode == sluice.UpTo && left > 0 && n > left {
			d.Allowed, n = true, left
		}
		if d.Allowed && n > 0 {
			if b.queue {
				d.Delay = b.wait(float64(b.burst) - tokens)
			}
			b.spend(at, n)
			d.Charged, moved = n, n
		}
	case sluice.Peek:
		d.Allowed = b.passes(tokens, a.N)
	case sluice.Settle:
		moved = b.settle(at, t, tokens, a)
	}
	if !d.Allowed {
		d.RetryAfter = b.retryAfter(at, tokens, a.N)
		if d.RetryAfter != sluice.Never {
			d.RetryAfter += lag
		}
	}
	if moved != 0 {
		b.last = t
		tokens = b.limiter.TokensAt(at)
	}
	d.Remaining = b.remaining(tokens)
	if missing := float64(b.burst) - tokens; missing >= 1 || b.wait(missing) > 0 {
		d.ResetAfter = max(b.wait(missing), time.Microsecond) + lag
	}
	return d, moved
}

// settle adds what is owed, up to one whole Burst over, or gives back what was spent, and returns what it added.
func (b *bucket) settle(at time.Time, now int64, tokens float64, a *sluice.Ask) int64 {
	spent := float64(b.burst) - tokens
	if a.N > 0 {
		n := min(a.N, int64(float64(b.burst+b.whole)-spent))
		if n <= 0 {
			return 0
		}
		b.spend(at, n)
		return n
	}
	p := int64(b.limit.Period / time.Microsecond)
	if b.window && a.At/p < now/p {
		return 0
	}
	n := -min(-max(a.N, -algorithm.Bound), int64(math.Ceil(spent)))
	if n < 0 {
		b.limiter.AllowN(at, whole(n))
	}
	return n
}

// passes tells whether n units pass with that many tokens. It forgives what is regained within 1 ns, as rate does.
func (b *bucket) passes(tokens float64, n int64) bool {
	switch {
	case n == 0:
		return true
	case n > b.whole:
		return false
	}
	return (float64(min(n, b.burst))-tokens)/b.rate*1e9 < 1 // above the burst: a full bucket goes into debt
}

// remaining is how many units pass, at most what the bucket holds.
func (b *bucket) remaining(tokens float64) int64 {
	n := max(0, int64(math.Floor(tokens)))
	if n < b.burst && b.passes(tokens, n+1) {
		n++
	}
	return n
}

// spend takes n units, whether or not they are there.
func (b *bucket) spend(at time.Time, n int64) {
	if n <= b.burst && b.limiter.AllowN(at, whole(n)) {
		return
	}
	b.limiter.SetBurstAt(at, whole(max(n, b.burst)))
	b.limiter.ReserveN(at, whole(n))
	b.limiter.SetBurstAt(at, whole(b.burst))
}

// undo takes back what decide moved at the same time.
func (b *bucket) undo(moved, now int64) {
	at := time.UnixMicro(max(now, b.last))
	switch {
	case moved > 0:
		b.limiter.AllowN(at, whole(-moved))
	case moved < 0:
		b.spend(at, -moved)
	}
}

// retryAfter is how long to wait until n units pass: whole µs, and no µs too few.
func (b *bucket) retryAfter(at time.Time, tokens float64, n int64) time.Duration {
	if n > b.whole {
		return sluice.Never
	}
	wait := max(b.wait(float64(min(n, b.burst))-tokens), time.Microsecond)
	for range 3 { // floating point may promise a little too early
		if b.passes(b.limiter.TokensAt(at.Add(wait)), n) {
			break
		}
		wait += time.Microsecond
	}
	return wait
}

// wait is how long the bucket takes to regain that many units, rounded up to a µs.
func (b *bucket) wait(units float64) time.Duration {
	ns := units / b.rate * 1e9
	if !(ns >= 1) {
		return 0
	}
	if ns >= float64(forever) {
		return forever
	}
	return time.Duration(math.Ceil((ns-1)/1e3)) * time.Microsecond
}

// refill makes up for what sums of floats miss of a bucket that should be full by now.
func (b *bucket) refill(now int64) {
	at := time.UnixMicro(max(now, b.last))
	if missing := float64(b.burst) - b.limiter.TokensAt(at); missing > 0 {
		b.limiter.AllowN(at, whole(-int64(math.Ceil(missing))))
	}
}

// copy returns a bucket of the same shape in which as much is spent.
func (b *bucket) copy(now int64) *bucket {
	c := &bucket{
		limit: b.limit, share: b.share, rate: b.rate, burst: b.burst, whole: b.whole,
		last: b.last, queue: b.queue, window: b.window,
	}
	at := time.UnixMicro(max(now, b.last))
	c.fill(at)
	c.spend(at, int64(math.Ceil(float64(b.burst)-b.limiter.TokensAt(at)-1e-9)))
	return c
}

// whole is n as rate counts it.
func whole(n int64) int {
	return int(min(max(n, math.MinInt), math.MaxInt))
}
