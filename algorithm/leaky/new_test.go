package leaky_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/leaky"
)

const (
	s  = time.Second
	us = time.Microsecond
)

// An error names the package, the field, its value and the bound.
func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		limit algorithm.Limit
		want  string
	}{
		{algorithm.Limit{Count: 0, Period: s, Burst: 1}, "Count 0: want at least 1"},
		{algorithm.Limit{Count: -1, Period: s, Burst: 1}, "Count -1: want at least 1"},
		{algorithm.Limit{Count: 1 << 52, Period: s, Burst: 1}, "Count 4503599627370496: want at most 4503599627370495"},
		{algorithm.Limit{Count: 1, Burst: 1}, "Period 0s: want at least 1µs"},
		{algorithm.Limit{Count: 1, Period: -s, Burst: 1}, "Period -1s: want at least 1µs"},
		{algorithm.Limit{Count: 1, Period: 1, Burst: 1}, "Period 1ns: want at least 1µs"},
		{algorithm.Limit{Count: 1, Period: 1500, Burst: 1}, "Period 1.5µs: want a whole number of µs"},
		{algorithm.Limit{Count: 2, Period: algorithm.MaxPeriod + us, Burst: 1}, "want at most 312749h58m26.842624s (2^50 µs)"},
		{algorithm.Limit{Count: 1, Period: s, Burst: 0}, "Burst 0: want at least 1"},
		{algorithm.Limit{Count: 1, Period: s, Burst: -1}, "Burst -1: want at least 0"},
		{algorithm.Limit{Count: 1_000_000_000, Period: s, Burst: 1 << 51}, "Burst 2251799813685248: want at most 2251799813685247"},
		{algorithm.Limit{Count: 1_000_000_000, Period: s, Burst: math.MaxInt64}, "Burst 9223372036854775807: want at most 2251799813685247"},
		{algorithm.Limit{Count: 1, Period: s, Burst: 562949954}, "Burst 562949954 at 1 per 1s: time to full"},
		{algorithm.Limit{Count: 1, Period: algorithm.MaxPeriod, Burst: 1}, "time to full with one Burst owed is 71.4 years: want at most 35.7"},
		// A period of a whole number of µs but not of ms has no coarser tick to fall back on.
		{algorithm.Limit{Count: 1_000_000, Period: 1_000_001 * us, Burst: 2251797562}, "Burst 2251797562: want at most 2251797561"},
	} {
		got, err := leaky.New(c.limit)
		switch {
		case err == nil:
			t.Errorf("New(%+v): no error; want one with %q", c.limit, c.want)
		case !strings.HasPrefix(err.Error(), "leaky: ") || !strings.Contains(err.Error(), c.want):
			t.Errorf("New(%+v): %v; want %q", c.limit, err, c.want)
		case got != nil:
			t.Errorf("New(%+v) returns a value with its error", c.limit)
		}
	}
}

func TestNewAccepts(t *testing.T) {
	for _, l := range []algorithm.Limit{
		{Count: 1, Period: us, Burst: 1},
		{Count: 1<<52 - 1, Period: s, Burst: 1},
		{Count: 1_000_000_000, Period: s, Burst: 1<<51 - 1},
		{Count: 1, Period: s, Burst: 562949953},
		{Count: 2, Period: algorithm.MaxPeriod, Burst: 1},
		{Count: 1_000_000, Period: 1_000_001 * us, Burst: 2251797561},
		{Count: 65_535, Period: s, Burst: 65_535},
		{Count: 1_000_000_000, Period: s, Burst: 1_000_000_000},
		{Count: 3, Period: 5 * s, Burst: 3},
		{Count: 1, Period: 30 * 24 * time.Hour, Burst: 1},
	} {
		got, err := leaky.New(l)
		if err != nil {
			t.Errorf("New(%+v): %v", l, err)
			continue
		}
		if got.Limit() != l {
			t.Errorf("New(%+v).Limit() is %+v", l, got.Limit())
		}
		most := max(l.Burst, l.Count)
		if l.Burst != 0 {
			most = l.Burst
		}
		if _, d := got.Take(algorithm.State{}, 1_700_000_000_000_000, most); !d.Allowed || d.Remaining != 0 || d.Limit != most {
			t.Errorf("%v: all at once is %+v: want allowed, none remaining", l, d)
		}
	}
}

// The same script and equal parameters mean the same strategy.
func TestLua(t *testing.T) {
	a, errA := leaky.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 3})
	b, errB := leaky.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 3})
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	script, p := a.Lua()
	again, q := b.Lua()
	if script != again || len(p) == 0 || len(p) != len(q) {
		t.Fatalf("Lua is %p %v and %p %v for one limit: want one script, equal parameters", script, p, again, q)
	}
	for i := range p {
		if p[i] != q[i] {
			t.Errorf("parameter %d is %d and %d for one limit", i, p[i], q[i])
		}
	}
	if len(script.Words) != len(algorithm.State{}) {
		t.Errorf("Words are %q: want %d", script.Words, len(algorithm.State{}))
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	st, err := leaky.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 3})
	if err != nil {
		t.Fatal(err)
	}
	var strategy algorithm.Strategy = st
	state, now := algorithm.State{}, int64(1_700_000_000_000_000)
	allocs := testing.AllocsPerRun(1000, func() {
		now += 20_000
		state, _ = strategy.Take(state, now, 1)
		state = strategy.Adjust(state, now, -1, now)
	})
	if allocs != 0 {
		t.Errorf("Take and Adjust allocate %v times", allocs)
	}
}
