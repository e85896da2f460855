package algorithmtest

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Step is one call of a history on one key.
type Step struct {
	Set      *algorithm.State // words to put under the key before the call; nil: those that the last call left
	Strategy algorithm.Strategy
	Adjust   bool  // call Adjust(N, At), else Take(N)
	Now      int64 // µs since the Unix epoch, 0 <= Now < 2^52; may step back
	N        int64 // units; any int64
	At       int64 // Adjust only: µs since the Unix epoch
}

// Histories returns that many steps of many short histories, the same for the same seed: takes and adjusts under
// limits that are edited, at times that stand, jump, step back and hit exactly where a request passes or a state
// ends, with costs from 0 to above the burst. Each history starts with Set, mostly the zero State, sometimes words
// that no algorithm wrote. Replay them to see whether another engine decides as Go does.
func Histories(seed uint64, count int, build New) []Step {
	src := newSeeded(seed)
	steps := make([]Step, 0, count)
	for len(steps) < count {
		w := newWalk(src, build, 3)
		if src.below(8) == 0 {
			w.state = forge(src, w.now)
		}
		set := w.state
		for i := range min(1+src.below(24), int64(count-len(steps))) {
			s := w.next()
			if i == 0 {
				s.Set = &set
			}
			w.run(s)
			steps = append(steps, s)
		}
	}
	return steps
}

// A walk makes up a history as it goes: it knows the state, so that it can aim at its edges.
type walk struct {
	src        source
	limits     []algorithm.Limit
	strategies []algorithm.Strategy
	state      algorithm.State
	now        int64 // µs
	limit      algorithm.Limit
	strategy   algorithm.Strategy // of the call to come
	charges    []Call
	latest     int64 // the latest now of the calls made
	wrote      int64 // the now of the last call that changed the state
}

// newWalk starts a history of a key never seen, under one limit and up to edits-1 edits of it.
func newWalk(src source, build New, edits int64) *walk {
	w := &walk{src: src}
	l, st := drawLimit(src, build)
	w.limits, w.strategies = append(w.limits, l), append(w.strategies, st)
	for range src.below(edits) {
		l, st := drawEdit(src, build, l)
		w.limits, w.strategies = append(w.limits, l), append(w.strategies, st)
	}
	w.limit, w.strategy = l, st
	w.now = oneOf(src, base, base+src.below(2*period(l)), base+spread(src, 50), spread(src, 51))
	return w
}

// next chooses a call.
func (w *walk) next() Step {
	i := w.src.below(int64(len(w.strategies)))
	w.limit, w.strategy = w.limits[i], w.strategies[i]
	w.now = w.drawNow()
	s := Step{Strategy: w.strategy, Now: w.now, Adjust: w.src.below(4) == 0}
	if s.Adjust {
		s.N, s.At = w.drawAdjust()
	} else {
		s.N = w.drawTake()
	}
	return s
}

// run makes a call and keeps its state.
func (w *walk) run(s Step) (d algorithm.Decision) {
	before := w.state
	if s.Adjust {
		w.state = s.Strategy.Adjust(w.state, s.Now, s.N, s.At)
	} else {
		w.state, d = s.Strategy.Take(w.state, s.Now, s.N)
	}
	if d.Charged > 0 {
		w.charges = append(w.charges, Call{Now: s.Now, N: d.Charged})
	}
	if w.state != before {
		w.wrote = s.Now
	}
	w.latest = max(w.latest, s.Now)
	return d
}

// drawNow stands, or moves to where something happens, or a µs short of it; it may step back.
func (w *walk) drawNow() int64 {
	p := period(w.limit)
	token := max(1, p/w.limit.Count)
	_, d := w.strategy.Take(w.state, w.now, 1+w.src.below(w.size()))
	now := w.now
	switch w.src.below(12) {
	case 0, 1:
	case 2, 3:
		if d.RetryAfter != algorithm.Never {
			now += micros(d.RetryAfter) - w.src.below(2)
		}
	case 4:
		now += micros(d.ResetAfter) - w.src.below(2)
	case 5:
		now += w.src.below(2*token + 1)
	case 6:
		now += w.src.below(p + 1)
	case 7:
		now += p - now%p - w.src.below(2)
	case 8:
		now += spread(w.src, 51)
	case 9:
		now -= w.src.below(2*p + 1)
	case 10:
		now -= spread(w.src, 45)
	case 11:
		now += 1 + w.src.below(9)
	}
	return clampTime(now)
}

func (w *walk) drawTake() int64 {
	_, d := w.strategy.Take(w.state, w.now, 0)
	switch w.src.below(12) {
	case 0:
		return 0
	case 1, 2, 3:
		return 1
	case 4:
		return d.Remaining
	case 5:
		return d.Remaining + 1
	case 6:
		return w.size()
	case 7:
		return w.size() + 1
	case 8:
		return oneOf[int64](w.src, math.MaxInt64, algorithm.Bound, -1, math.MinInt64)
	case 9:
		return 1 + w.src.below(max(1, d.Remaining))
	}
	return 1 + w.src.below(w.size())
}

func (w *walk) drawAdjust() (n, at int64) {
	at = oneOf(w.src, w.now, w.now-w.src.below(period(w.limit)), w.now-spread(w.src, 45))
	switch w.src.below(8) {
	case 0:
		n = -1
	case 1, 2, 3:
		if len(w.charges) > 0 {
			c := oneOf(w.src, w.charges...)
			return -c.N, c.Now
		}
	case 4:
		n = oneOf[int64](w.src, math.MinInt64, math.MaxInt64, algorithm.Bound, -algorithm.Bound)
	case 5:
		_, d := w.strategy.Take(w.state, w.now, 0)
		n = d.Remaining + 1
	case 6:
		n = 1 + w.src.below(2*w.size())
	case 7:
		n = -1 - w.src.below(2*w.size())
	}
	return n, at
}

// size is the most units at one instant under the limit at hand.
func (w *walk) size() int64 { return atOnce(w.limit) }

func atOnce(l algorithm.Limit) int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Count
}

// forge makes up words that a store accepts and no algorithm wrote.
func forge(src source, now int64) algorithm.State {
	var s algorithm.State
	for i := range s {
		n := spread(src, 52)
		s[i] = oneOf(src, 0, 1, n, n, -n, now, now-n, now+n, algorithm.Bound, -algorithm.Bound, algorithm.Bound-n)
		s[i] = min(max(s[i], -algorithm.Bound), algorithm.Bound)
	}
	return s
}

func clampTime(now int64) int64 { return min(max(now, 0), algorithm.Bound-1) }

func period(l algorithm.Limit) int64 { return micros(l.Period) }

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
