package algorithmtest

import (
	"math"

	"github.com/sluice-go/sluice/algorithm"
)

// Contract 3 and 5: no state to write where nothing was charged.
func denialChangesNothing(c *cases) {
	c.points(edited, func(p point) {
		if p.src.below(4) == 0 {
			p.s = forge(p.src, p.now)
		}
		for _, n := range []int64{0, p.walk.drawTake(), p.cost(), math.MaxInt64, -1, math.MinInt64} {
			next, d := p.st.Take(p.s, p.now, n)
			switch {
			case (n == 0 || !d.Allowed) && next != p.s:
				p.fail("Take(%d) allowed %v and changed the state to %v", n, d.Allowed, next)
			case n == 0 && (!d.Allowed || d.Charged != 0):
				p.fail("Take(0) is %+v: want allowed, nothing charged", d)
			case d.Allowed && d.Charged != n || !d.Allowed && d.Charged != 0:
				p.fail("Take(%d) is %+v: want all or nothing charged", n, d)
			case n < 0 && (d.Allowed || d.RetryAfter != algorithm.Never):
				p.fail("Take(%d) is %+v: want denied for ever", n, d)
			}
		}
	})
}

// Contract 4: the same request passes after RetryAfter and not one tick before; never 0; Never only above the burst.
func retryAfterExact(c *cases) {
	c.points(edited, func(p point) {
		for _, n := range []int64{p.cost(), atOnce(p.limit), atOnce(p.limit) + 1} {
			d := p.take(p.s, p.now, n)
			if never := d.RetryAfter == algorithm.Never; never != (n > atOnce(p.limit)) {
				p.fail("Take(%d) has RetryAfter %v: want Never only above %d", n, d.RetryAfter, atOnce(p.limit))
			}
			if d.Allowed {
				if d.RetryAfter != 0 {
					p.fail("Take(%d) is allowed with RetryAfter %v", n, d.RetryAfter)
				}
				continue
			}
			if d.RetryAfter <= 0 {
				p.fail("Take(%d) is denied with RetryAfter %v", n, d.RetryAfter)
			}
			passes := p.now + micros(d.RetryAfter)
			if d.RetryAfter == algorithm.Never || passes >= algorithm.Bound {
				continue
			}
			if again := p.take(p.s, passes, n); !again.Allowed {
				p.fail("Take(%d) is denied after RetryAfter %v: %+v", n, d.RetryAfter, again)
			}
			if early := passes - p.tick; early >= p.now && p.take(p.s, early, n).Allowed {
				p.fail("Take(%d) passes a tick before RetryAfter %v", n, d.RetryAfter)
			}
		}
	})
}

// Contract 4: what is said to remain passes, and one more does not.
func remainingExact(c *cases) {
	c.points(edited, func(p point) {
		n := p.walk.drawTake()
		next, d := p.st.Take(p.s, p.now, n)
		if got := p.take(next, p.now, d.Remaining); !got.Allowed {
			p.fail("after Take(%d), %d remain, and are denied: %+v", n, d.Remaining, got)
		}
		if got := p.take(next, p.now, d.Remaining+1); got.Allowed {
			p.fail("after Take(%d), %d remain, and one more passes", n, d.Remaining)
		}
		if d.Limit != atOnce(p.limit) || d.At != p.now {
			p.fail("Take(%d) is %+v: want Limit %d, At %d", n, d, atOnce(p.limit), p.now)
		}
	})
}

// UpTo charges the less of what is asked and what remains.
func upToTakesRemaining(c *cases) {
	c.points(edited, func(p point) {
		n := oneOf(p.src, 0, p.cost(), atOnce(p.limit)+1, math.MaxInt64)
		remaining := p.take(p.s, p.now, 0).Remaining
		next, d := algorithm.UpTo(p.st, p.s, p.now, n)
		want := min(n, remaining)
		if d.Charged != want || d.Allowed != (want > 0 || n == 0) {
			p.fail("UpTo(%d) with %d remaining is %+v: want %d charged", n, remaining, d, want)
		}
		if d.Allowed && d.RetryAfter != 0 {
			p.fail("UpTo(%d) charged %d with RetryAfter %v: want 0", n, want, d.RetryAfter)
		}
		if two, _ := p.st.Take(p.s, p.now, want); next != two {
			p.fail("UpTo(%d) keeps %v, Take(%d) keeps %v", n, next, want, two)
		}
		if !d.Allowed && d != p.take(p.s, p.now, n) {
			p.fail("UpTo(%d) is refused with %+v: want Take's answer for all of it", n, d)
		}
	})
}

// Strategy: after a charge, k more of n at the same instant pass and leave what one of the same sum does: a store may run
// them as one.
func chargesAddUp(c *cases) {
	c.points(edited, func(p point) {
		most := atOnce(p.limit)
		n := oneOf(p.src, 1, p.cost(), 1+p.src.below(most/2+1), 1+p.src.below(most/64+1))
		s, d := p.st.Take(p.s, p.now, n)
		if !d.Allowed {
			return
		}
		calls := 1 + p.src.below(64)
		each, passed := s, int64(0)
		for range calls {
			next, d := p.st.Take(each, p.now, n)
			if !d.Allowed {
				break
			}
			each, passed = next, passed+1
		}
		if n > algorithm.Bound/calls {
			return // no sum
		}
		sum := calls
		at, all := p.st.Take(s, p.now, n*sum)
		if !all.Allowed {
			sum = all.Remaining / n
			at, all = p.st.Take(s, p.now, n*sum)
		}
		if !all.Allowed || sum != passed || at != each {
			p.fail("after Take(%d), of %d more of the same %d pass and leave %v; at once %d and %v", n, calls, passed, each, sum, at)
		}
	})
}

// Contract 6: at ResetAfter the state is as good as new. Under one limit it isn't a tick before.
func resetAfterExact(c *cases) {
	edits := oneOf[int64](c.src, oneLimit, edited)
	c.points(edits, func(p point) {
		if p.s == (algorithm.State{}) {
			return
		}
		d := p.take(p.s, p.now, 0)
		zero := p.now + micros(d.ResetAfter)
		if zero >= algorithm.Bound || zero-p.walk.wrote > micros(algorithm.MaxPeriod) {
			return // what an edit makes last longer may be cut off
		}
		for _, n := range []int64{0, 1, p.cost(), atOnce(p.limit) + 1} {
			next, got := p.st.Take(p.s, zero, n)
			wantNext, want := p.st.Take(algorithm.State{}, zero, n)
			if got != want || n > 0 && got.Allowed && next != wantNext {
				p.fail("Take(%d) after ResetAfter %v is %+v, keeps %v: want %+v, %v as from a fresh state", n, d.ResetAfter, got, next, want, wantNext)
			}
		}
		if early := zero - p.tick; len(p.walk.limits) == 1 && early >= p.now {
			if got := p.take(p.s, early, 0); got.Remaining == got.Limit {
				p.fail("the state is as good as new a tick before ResetAfter %v", d.ResetAfter)
			}
		}
	})
}

// Contract 17: no words make a strategy panic or write others than it may.
func saneOnAnyWords(c *cases) {
	w := newWalk(c.src, c.build, edited)
	for range 12 {
		w.next()
		p := c.point(w)
		p.s = forge(p.src, p.now)
		if p.src.below(3) == 0 { // a unit or a period that fits, to get past the first check
			_, params := p.st.Lua()
			p.s[2] = params[0]
		}
		p.now = oneOf(p.src, 0, p.now, algorithm.Bound-1, spread(p.src, 52))
		for _, n := range []int64{0, 1, p.cost(), oneOf[int64](p.src, math.MinInt64, -1, math.MaxInt64)} {
			next, d := p.st.Take(p.s, p.now, n)
			p.sane("Take", n, next)
			if d.Remaining < 0 || d.Remaining > d.Limit || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Delay < 0 {
				p.fail("Take(%d) is %+v: want 0 <= Remaining <= Limit and no negative time", n, d)
			}
			if !d.Allowed && d.RetryAfter == 0 {
				p.fail("Take(%d) is denied with RetryAfter 0", n)
			}
			at := oneOf(p.src, 0, p.now, spread(p.src, 52))
			p.sane("Adjust", n, p.st.Adjust(p.s, p.now, n, at))
		}
	}
}

func (p point) sane(call string, n int64, s algorithm.State) {
	p.Helper()
	for i, word := range s {
		if word < -algorithm.Bound || word > algorithm.Bound {
			p.fail("%s(%d) keeps %v: want word %d within ±2^52", call, n, s, i+1)
		}
	}
}

// Strategy: spending never turns a denial into an allowance, neither now nor later.
func spendingMonotone(c *cases) {
	c.points(edited, func(p point) {
		n, m := p.cost(), p.cost()
		later := clampTime(p.now + oneOf(p.src, 0, p.src.below(period(p.limit)+1), spread(p.src, 50)))
		spent, d := p.st.Take(p.s, p.now, n)
		if !d.Allowed {
			spent = p.st.Adjust(p.s, p.now, n, p.now)
		}
		if p.take(spent, later, m).Allowed && !p.take(p.s, later, m).Allowed {
			p.fail("spending %d (kept %v) lets %d pass at %d µs that were denied", n, spent, m, later)
		}
	})
}
