package algorithm_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

const (
	s  = time.Second
	us = time.Microsecond
)

// refusal is a limit that a constructor refuses, and a part of its error: field, value and bound.
type refusal struct {
	limit algorithm.Limit
	want  string
}

var refusedByBuckets = []refusal{
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
}

var acceptedByBuckets = []algorithm.Limit{
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
}

var refusedByWindows = []refusal{
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
}

var acceptedByWindows = []algorithm.Limit{
	{Count: 1, Period: us},
	{Count: 2, Period: s, Burst: 2},
	{Count: 1<<51 - 1, Period: s},
	{Count: 1<<51 - 1, Period: us},
	{Count: 1, Period: 30 * 24 * time.Hour},
}

// constructors are the four, and what they make of limits.
var constructors = []struct {
	name     string
	build    algorithmtest.New
	refused  []refusal
	accepted []algorithm.Limit
}{
	{"tokenbucket", algorithmtest.Of(tokenbucket.New), refusedByBuckets, acceptedByBuckets},
	{"leaky", algorithmtest.Of(leaky.New), refusedByBuckets, acceptedByBuckets},
	{"fixedwindow", algorithmtest.Of(fixedwindow.New), refusedByWindows, slices.Concat(acceptedByWindows, []algorithm.Limit{
		{Count: 1, Period: algorithm.MaxPeriod},
	})},
	{"slidingwindow", algorithmtest.Of(slidingwindow.New), slices.Concat(refusedByWindows, []refusal{
		{algorithm.Limit{Count: 1, Period: algorithm.MaxPeriod/2 + us}, "(2^49 µs)"},
		{algorithm.Limit{Count: 1 << 51, Period: 2 * s}, "Count 2251799813685248: want at most 1125899906842623 per 2s"},
		{algorithm.Limit{Count: 2_251_798, Period: 1_000_001_001 * us}, "want at most 2251797"},
	}), slices.Concat(acceptedByWindows, []algorithm.Limit{
		{Count: 1, Period: algorithm.MaxPeriod / 2},
		{Count: 1125899906842623, Period: 2 * s},
		{Count: 2_251_797, Period: 1_000_001_001 * us},
	})},
}

// An error names the package, the field, its value and the bound.
func TestNewRefuses(t *testing.T) {
	for _, a := range constructors {
		for _, c := range a.refused {
			got, err := a.build(c.limit)
			switch {
			case err == nil:
				t.Errorf("%s.New(%+v): no error; want one with %q", a.name, c.limit, c.want)
			case !strings.HasPrefix(err.Error(), a.name+": ") || !strings.Contains(err.Error(), c.want):
				t.Errorf("%s.New(%+v): %v; want %q", a.name, c.limit, err, c.want)
			case got != nil:
				t.Errorf("%s.New(%+v) returns a value with its error", a.name, c.limit)
			}
		}
	}
}

func TestNewAccepts(t *testing.T) {
	for _, a := range constructors {
		for _, l := range a.accepted {
			got, err := a.build(l)
			if err != nil {
				t.Errorf("%s.New(%+v): %v", a.name, l, err)
				continue
			}
			if got.Limit() != l {
				t.Errorf("%s.New(%+v).Limit() is %+v", a.name, l, got.Limit())
			}
			most := l.Burst
			if most == 0 {
				most = l.Count
			}
			if _, d := got.Take(algorithm.State{}, 1_700_000_000_000_000, most); !d.Allowed || d.Remaining != 0 || d.Limit != most {
				t.Errorf("%s, %v: all at once is %+v: want allowed, none remaining", a.name, l, d)
			}
		}
	}
}

// The same script and equal parameters mean the same strategy.
func TestLua(t *testing.T) {
	for _, c := range constructors {
		l := c.accepted[0]
		a, errA := c.build(l)
		b, errB := c.build(l)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		script, p := a.Lua()
		again, q := b.Lua()
		if script != again || len(p) == 0 || !slices.Equal(p, q) {
			t.Errorf("%s: Lua is %p %v and %p %v for one limit: want one script, equal parameters", c.name, script, p, again, q)
		}
		if len(script.Words) != len(algorithm.State{}) {
			t.Errorf("%s: Words are %q: want %d", c.name, script.Words, len(algorithm.State{}))
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	for _, c := range constructors {
		l := algorithm.Limit{Count: 10, Period: s}
		if c.name == "tokenbucket" || c.name == "leaky" {
			l.Burst = 10
		}
		strategy, err := c.build(l)
		if err != nil {
			t.Fatal(err)
		}
		state, now := algorithm.State{}, int64(1_700_000_000_000_000)
		allocs := testing.AllocsPerRun(1000, func() {
			now += 20_000
			state, _ = strategy.Take(state, now, 1)
			state = strategy.Adjust(state, now, -1, now)
		})
		if allocs != 0 {
			t.Errorf("%s: Take and Adjust allocate %v times", c.name, allocs)
		}
	}
}
