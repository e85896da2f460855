package sim

import (
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Exact returns the exact sliding log: n units pass if with them no more than Count were admitted in the last Period.
// A unit counts for exactly one Period, so it passes again at the µs when the Period has passed.
//
// It remembers every unit of the last Period, and is an oracle only: its state is a list, and grows with Count.
func Exact(l algorithm.Limit) (Limiter, error) {
	if err := l.CheckWindow("sim: exact log"); err != nil {
		return nil, err
	}
	return &logs{limit: l}, nil
}

type logs struct {
	limit algorithm.Limit
	keys  []entries
}

func (g *logs) Limit() algorithm.Limit { return g.limit }

// Take's states are what the log comes to, since it has no room in a State: units in the last Period, and the times of
// the oldest and of the newest of them.
func (g *logs) Take(key int, now, n int64) (before, after algorithm.State, d algorithm.Decision) {
	for key >= len(g.keys) {
		g.keys = append(g.keys, entries{})
	}
	e := &g.keys[key]
	period := g.limit.Period.Microseconds()
	before = e.state()
	e.forget(now - period)
	d = algorithm.Decision{Limit: g.limit.Count, At: now, Remaining: g.limit.Count - e.sum}
	switch {
	case n == 0:
		d.Allowed = true
	case n < 0 || n > g.limit.Count:
		d.RetryAfter = algorithm.Never
	case e.sum+n > g.limit.Count:
		d.RetryAfter = µs(e.when(e.sum+n-g.limit.Count) + period - now)
	default:
		e.add(now, n)
		d.Allowed, d.Charged, d.Remaining = true, n, d.Remaining-n
	}
	if e.sum > 0 {
		d.ResetAfter = µs(e.last() + period - now)
	}
	return before, e.state(), d
}

// Most is Count in one Period. A longer time is as many Periods as it needs.
func (g *logs) Most(t time.Duration) int64 {
	return int64((t+g.limit.Period-1)/g.limit.Period) * g.limit.Count
}

// Size is that of a sorted set with a member for each unit: its score and its member are times in µs, of 16 digits.
func (g *logs) Size(key int) int {
	if key >= len(g.keys) {
		return 0
	}
	return int(g.keys[key].sum) * 32
}

// Calls are TIME, ZREMRANGEBYSCORE and ZCARD, and for a charge a ZADD of all its members and PEXPIRE.
func (g *logs) Calls(allowed bool, n int64) int {
	if allowed && n > 0 {
		return 5
	}
	return 3
}

func µs(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// entries is a queue of units with their times, oldest first. Those of one time are one entry.
type entries struct {
	ring []entry // a power of two long
	head int
	n    int
	sum  int64 // units
}

type entry struct{ at, n int64 } // µs, units

func (e *entries) at(i int) *entry { return &e.ring[(e.head+i)&(len(e.ring)-1)] }

func (e *entries) add(at, n int64) {
	e.sum += n
	if e.n > 0 {
		if newest := e.at(e.n - 1); newest.at == at {
			newest.n += n
			return
		}
	}
	if e.n == len(e.ring) {
		grown := make([]entry, max(8, 2*len(e.ring)))
		for i := range e.n {
			grown[i] = *e.at(i)
		}
		e.ring, e.head = grown, 0
	}
	e.n++
	*e.at(e.n - 1) = entry{at, n}
}

// forget drops what is not after a time.
func (e *entries) forget(until int64) {
	for e.n > 0 && e.at(0).at <= until {
		e.sum -= e.at(0).n
		e.head = (e.head + 1) & (len(e.ring) - 1)
		e.n--
	}
}

// when is the time of the k-th oldest unit, k from 1 to e.sum.
func (e *entries) when(k int64) int64 {
	i := 0
	for ; i < e.n-1 && e.at(i).n < k; i++ {
		k -= e.at(i).n
	}
	return e.at(i).at
}

func (e *entries) first() int64 { return e.at(0).at }
func (e *entries) last() int64  { return e.at(e.n - 1).at }

func (e *entries) state() algorithm.State {
	if e.n == 0 {
		return algorithm.State{}
	}
	return algorithm.State{e.sum, e.first(), e.last()}
}
