package algorithmtest

import (
	"flag"
	"testing"

	"github.com/sluice-go/sluice/algorithm"
	"pgregory.net/rapid"
)

// Invariants checks the contract of [algorithm.Strategy], each line as a property of random histories, and what the
// algorithm promises over time. Every property is a subtest and logs how many cases it tried.
//
// Each property runs 1000 histories; the flag -rapid.checks sets another number.
func Invariants(t *testing.T, build New, law Law) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("1000")
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	for _, p := range properties() {
		t.Run(p.name, func(t *testing.T) {
			t.Logf("%d cases", p.check(t, build, law))
		})
	}
}

type property struct {
	name string
	run  func(c *cases)
}

func properties() []property {
	return []property{
		{"denial and zero change nothing", denialChangesNothing},
		{"RetryAfter is exact", retryAfterExact},
		{"admits no more than its bound", withinBound},
		{"decides as its model", asModel},
		{"ResetAfter leads to the zero state", resetAfterExact},
		{"a clock stepping back never credits twice", clockBack},
		{"giving back never widens", givingBack},
		{"a window that ended gets nothing back", endedWindow},
		{"adding stops at one burst over", addingStops},
		{"any words give sane decisions", saneOnAnyWords},
		{"UpTo takes what remains", upToTakesRemaining},
		{"spending never turns a denial into an allowance", spendingMonotone},
		{"edited limits stay between the two", editedLimits},
		{"Remaining is exact", remainingExact},
		{"many charges at one instant are one", chargesAddUp},
	}
}

func (p property) check(t rapid.TB, build New, law Law) int {
	t.Helper()
	tried := 0
	rapid.Check(t, func(rt *rapid.T) {
		p.run(&cases{T: rt, src: drawn{rt}, build: build, law: law, tried: &tried})
	})
	return tried
}

// cases is one run of a property: some histories, and at each of their points a case.
type cases struct {
	*rapid.T
	src   source
	build New
	law   Law
	tried *int
}

// point is where a history stands when a property looks at it: the next call would be st's, at now, on s.
type point struct {
	*cases
	st    algorithm.Strategy
	limit algorithm.Limit
	tick  int64 // µs
	s     algorithm.State
	now   int64
	walk  *walk
}

// Points of a history under one limit, and under one that is edited.
const (
	oneLimit = 1
	edited   = 3
)

// points walks a history and stops at each step.
func (c *cases) points(edits int64, visit func(p point)) {
	w := newWalk(c.src, c.build, edits)
	for range 12 {
		s := w.next()
		visit(c.point(w))
		w.run(s)
	}
}

func (c *cases) point(w *walk) point {
	*c.tried++
	return point{cases: c, st: w.strategy, limit: w.limit, tick: c.law.tick(w.limit), s: w.state, now: w.now, walk: w}
}

// take is a call that is not part of the history.
func (p point) take(s algorithm.State, now, n int64) algorithm.Decision {
	_, d := p.st.Take(s, now, n)
	return d
}

func (p point) fail(format string, args ...any) {
	p.Helper()
	p.Fatalf("%v (tick %d µs), state %v at %d µs, under %v: "+format,
		append([]any{p.limit, p.tick, p.s, p.now, p.walk.limits}, args...)...)
}

// cost is a number of units from 1 to the most at one instant.
func (p point) cost() int64 {
	most := atOnce(p.limit)
	return oneOf(p.src, 1, most, 1+p.src.below(most), 1+spread(p.src, 51)%most)
}
