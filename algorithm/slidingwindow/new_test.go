package slidingwindow_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
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
		{algorithm.Limit{Count: 0, Period: s}, "Count 0: want at least 1"},
		{algorithm.Limit{Count: -1, Period: s}, "Count -1: want at least 1"},
		{algorithm.Limit{Count: 1}, "Period 0s: want at least 1µs"},
		{algorithm.Limit{Count: 1, Period: -s}, "Period -1s: want at least 1µs"},
		{algorithm.Limit{Count: 1, Period: 1}, "Period 1ns: want at least 1µs"},
		{algorithm.Limit{Count: 1, Period: 1500}, "Period 1.5µs: want a whole number of µs"},
		{algorithm.Limit{Count: 2, Period: s, Burst: 1}, "Burst 1: want 0 or Count 2"},
		{algorithm.Limit{Count: 2, Period: s, Burst: -1}, "Burst -1: want at least 0"},
		{algorithm.Limit{Count: math.MaxInt64, Period: s}, "Count 9223372036854775807: want at most"},
		{algorithm.Limit{Count: 1 << 51, Period: s}, "Count 2251799813685248: want at most 2251799813685247"},
		{algorithm.Limit{Count: 1 << 51, Period: us}, "Count 2251799813685248: want at most 2251799813685247"},
		{algorithm.Limit{Count: 1, Period: algorithm.MaxPeriod + us}, "(2^50 µs)"},
		{algorithm.Limit{Count: 1, Period: algorithm.MaxPeriod/2 + us}, "(2^49 µs)"},
		{algorithm.Limit{Count: 1 << 51, Period: 2 * s}, "Count 2251799813685248: want at most 1125899906842623 per 2s"},
		{algorithm.Limit{Count: 2_251_798, Period: 1_000_001_001 * us}, "want at most 2251797"},
	} {
		got, err := slidingwindow.New(c.limit)
		switch {
		case err == nil:
			t.Errorf("New(%+v): no error; want one with %q", c.limit, c.want)
		case !strings.HasPrefix(err.Error(), "slidingwindow: ") || !strings.Contains(err.Error(), c.want):
			t.Errorf("New(%+v): %v; want %q", c.limit, err, c.want)
		case got != nil:
			t.Errorf("New(%+v) returns a value with its error", c.limit)
		}
	}
}

func TestNewAccepts(t *testing.T) {
	for _, l := range []algorithm.Limit{
		{Count: 1, Period: us},
		{Count: 2, Period: s, Burst: 2},
		{Count: 1<<51 - 1, Period: s},
		{Count: 1<<51 - 1, Period: us},
		{Count: 1, Period: algorithm.MaxPeriod / 2},
		{Count: 1, Period: 30 * 24 * time.Hour},
		{Count: 1125899906842623, Period: 2 * s},
		{Count: 2_251_797, Period: 1_000_001_001 * us},
	} {
		got, err := slidingwindow.New(l)
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
	a, errA := slidingwindow.New(algorithm.Limit{Count: 10, Period: 10 * time.Second})
	b, errB := slidingwindow.New(algorithm.Limit{Count: 10, Period: 10 * time.Second})
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
	st, err := slidingwindow.New(algorithm.Limit{Count: 10, Period: 10 * time.Second})
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
