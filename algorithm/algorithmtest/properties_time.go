package algorithmtest

import (
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Contract 1: over any time no more passes than the limit promises, net of what is given back, plus what is owed.
func withinBound(c *cases) {
	w := newWalk(c.src, c.build, oneLimit)
	st, l := w.strategy, w.limit
	var calls []Call
	var refundable []Call
	owes := false
	for range 20 {
		now := w.drawNow()
		if now < w.now {
			now = w.now
		}
		w.now = now
		p := c.point(w)
		switch {
		case p.src.below(5) == 0 && len(refundable) > 0:
			i := p.src.below(int64(len(refundable)))
			charged := refundable[i]
			refundable = append(refundable[:i], refundable[i+1:]...)
			w.state = st.Adjust(w.state, now, -charged.N, charged.Now)
			calls = append(calls, Call{Now: now, N: -charged.N, At: charged.Now})
		case p.src.below(8) == 0 && !owes:
			owes = true // once: a second debt might be cut off at one burst over
			n := p.cost()
			w.state = st.Adjust(w.state, now, n, now)
			calls = append(calls, Call{Now: now, N: n})
		default:
			next, d := st.Take(w.state, now, w.drawTake())
			w.state = next
			if d.Charged == 0 {
				continue
			}
			calls = append(calls, Call{Now: now, N: d.Charged})
			refundable = append(refundable, Call{Now: now, N: d.Charged})
			if err := p.law.Bound(l, calls); err != nil {
				p.fail("%v; calls %v", err, calls)
			}
		}
	}
}

// Contract 2: no drift. Every field of every decision is that of a model on integers of any size.
func asModel(c *cases) {
	if c.law.Model == nil {
		return // does not apply: 0 cases
	}
	w := newWalk(c.src, c.build, oneLimit)
	m := c.law.Model(w.limit)
	for range 20 {
		s := w.next()
		if s.N < 0 && !s.Adjust {
			continue
		}
		p := c.point(w)
		if s.Adjust {
			m.Adjust(s.Now, s.N, s.At)
			w.run(s)
			s.Adjust, s.N = false, 0
		}
		got, want := w.run(s), m.Take(s.Now, s.N)
		if got != want {
			p.fail("Take(%d) is %+v: want %+v; now %v", s.N, got, want, w.state)
		}
	}
}

// Contract 7: units that pass at times that step back are no more than if the clock had stood instead.
func clockBack(c *cases) {
	w := newWalk(c.src, c.build, oneLimit)
	st := w.strategy
	var stepping, standing algorithm.State
	latest, admitted, most := int64(0), 0, 0
	for range 40 {
		w.state = stepping
		w.now = w.drawNow()
		latest = max(latest, w.now)
		p := c.point(w)
		var d algorithm.Decision
		if stepping, d = st.Take(stepping, w.now, 1); d.Allowed {
			admitted++
		}
		if standing, d = st.Take(standing, latest, 1); d.Allowed {
			most++
		}
		if admitted > most {
			p.fail("%d admitted by a clock that steps back, %d by one that stands: %v, %v at %d µs", admitted, most, stepping, standing, latest)
		}
	}
}

// Contract 8: while processes hold different limits for one key, they admit together no more than the larger allows
// and no less than 0.98 of the smaller.
func editedLimits(c *cases) {
	large, small := drawOrdered(c.src, c.build)
	*c.tried++
	start := base + c.src.below(period(large.Limit()))
	start -= start % 1_000_000 // a tick of both
	both := saturate(start, algorithm.Bound, large, small)
	if len(both) == 0 {
		c.Fatalf("%v and %v together admit nothing", large.Limit(), small.Limit())
	}
	for i := len(both) - 1; i >= 0; i -= 1 + int(c.src.below(16)) {
		if err := c.law.Bound(large.Limit(), both[:i+1]); err != nil {
			c.Fatalf("%v and %v together: %v", large.Limit(), small.Limit(), err)
		}
	}
	end := both[len(both)-1].Now // at this instant, more might have passed
	alone := saturate(start, end, small)
	if len(both) < len(alone)-len(alone)/50-1 {
		c.Fatalf("%v and %v together admit %d until %d µs, the smaller alone %d", large.Limit(), small.Limit(), len(both), end, len(alone))
	}
}

// drawOrdered chooses two limits of which the first allows at least as much as the second: windows of one period.
func drawOrdered(src source, build New) (large, small algorithm.Strategy) {
	l, _ := drawLimit(src, build)
	k, _ := drawEdit(src, build, l)
	if l.Burst == 0 {
		k.Period = l.Period
	} else if k.Burst, l.Burst = 1+k.Burst%100, 1+l.Burst%100; k.Burst > l.Burst {
		k.Burst, l.Burst = l.Burst, k.Burst
	}
	if mul(k.Count, period(l)).Cmp(mul(l.Count, period(k))) > 0 {
		k.Count, l.Count, k.Period, l.Period = l.Count, k.Count, l.Period, k.Period
	}
	large, errA := build(l)
	small, errB := build(k)
	if errA != nil || errB != nil { // an order that the constructor refuses: the limit against itself
		_, large = drawLimit(src, build)
		return large, large
	}
	return large, small
}

// saturate asks for one unit by each strategy in turn, whenever any of them would pass, until a time or until as many
// have passed as a property needs.
func saturate(now, end int64, sts ...algorithm.Strategy) (admitted []Call) {
	var s algorithm.State
	for turn := 0; now < end && len(admitted) < 200 && turn < 10_000; {
		wait := algorithm.Never
		for range sts {
			next, d := sts[turn%len(sts)].Take(s, now, 1)
			turn++
			if d.Allowed {
				s, wait = next, 0
				admitted = append(admitted, Call{Now: now, N: 1})
				break
			}
			wait = min(wait, max(d.RetryAfter, time.Microsecond))
		}
		now += micros(wait)
	}
	return admitted
}
