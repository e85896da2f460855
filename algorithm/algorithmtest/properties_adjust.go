package algorithmtest

import (
	"math"

	"github.com/sluice-go/sluice/algorithm"
)

// Contract 5: what was charged and given back at once leaves the verdict as it was, and no more.
func givingBack(c *cases) {
	edits := oneOf[int64](c.src, oneLimit, edited)
	c.points(edits, func(p point) {
		n := p.cost()
		next, d := p.st.Take(p.s, p.now, n)
		if !d.Allowed {
			n, next = 0, p.s
		}
		back := p.st.Adjust(next, p.now, -n, p.now)
		later := clampTime(p.now + oneOf(p.src, 0, p.src.below(period(p.limit)+1), spread(p.src, 50)))
		slack := int64(0)
		if len(p.walk.limits) > 1 {
			slack = 1 // a verdict on what another limit wrote is rounded down by less than a unit
		}
		was, is := p.take(p.s, later, 0), p.take(back, later, 0)
		if is.Remaining > was.Remaining+slack {
			p.fail("Take(%d) given back keeps %v: at %d µs %d remain: want at most %d", n, back, later, is.Remaining, was.Remaining)
		}
		for _, m := range []int64{0, 1, p.cost()} {
			was, is := p.take(p.s, later, m), p.take(back, later, m)
			if is.Allowed && !p.take(p.s, later, max(0, m-slack)).Allowed {
				p.fail("Take(%d) given back keeps %v: Take(%d) at %d µs was %+v, is %+v", n, back, m, later, was, is)
			}
			if slack == 0 && p.now >= p.walk.latest && is != was {
				p.fail("Take(%d) given back keeps %v: Take(%d) at %d µs is %+v: want %+v", n, back, m, later, is, was)
			}
		}
		empty := p.st.Adjust(p.s, p.now, math.MinInt64, p.now)
		if got := p.take(empty, p.now, 0); got.Remaining > got.Limit {
			p.fail("Adjust(-2^63) keeps %v: %+v", empty, got)
		}
		if p.law.Window {
			return
		}
		if empty != (algorithm.State{}) {
			p.fail("Adjust(-2^63) keeps %v: want the zero state", empty)
		}
	})
}

// Contract 5: a window that has ended gets nothing back.
func endedWindow(c *cases) {
	if !c.law.Window {
		return // does not apply: 0 cases
	}
	c.points(edited, func(p point) {
		size := period(p.limit)
		at := p.now - p.now%size - 1 - p.src.below(size)
		got := p.st.Adjust(p.s, p.now, -p.cost(), at)
		for _, m := range []int64{0, 1, p.cost()} {
			if was, is := p.take(p.s, p.now, m), p.take(got, p.now, m); is != was {
				p.fail("giving back what was charged at %d µs keeps %v: Take(%d) is %+v: want %+v", at, got, m, is, was)
			}
		}
	})
}

// Contract 5: adding stops at one burst over, and what is owed delays until it is worked off.
func addingStops(c *cases) {
	c.points(oneLimit, func(p point) {
		n := p.cost()
		fresh, _ := p.st.Take(algorithm.State{}, p.now, atOnce(p.limit))
		once := p.st.Adjust(fresh, p.now, atOnce(p.limit), p.now)
		for _, more := range []int64{1, n, math.MaxInt64} {
			if twice := p.st.Adjust(once, p.now, more, p.now); twice != once {
				p.fail("one burst over is %v; adding %d makes it %v", once, more, twice)
			}
			if got := p.st.Adjust(p.s, p.now, more, p.now); p.take(got, p.now, 0).Remaining > p.take(p.s, p.now, 0).Remaining {
				p.fail("adding %d keeps %v, from which more passes", more, got)
			}
		}
		most := p.st.Adjust(p.s, p.now, math.MaxInt64, p.now)
		if d := p.take(most, p.now, 1); d.Allowed || d.Remaining != 0 {
			p.fail("adding without end keeps %v: Take(1) is %+v", most, d)
		}
		full, over := p.take(fresh, p.now, 1), p.take(once, p.now, 1)
		if over.RetryAfter < full.RetryAfter {
			p.fail("full, RetryAfter is %v; owing one burst more it is %v", full.RetryAfter, over.RetryAfter)
		}
	})
}
