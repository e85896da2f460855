package algorithm_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// each runs a test on every algorithm, with a limit of count units per 10 s, all at once.
func each(t *testing.T, count int64, test func(t *testing.T, st algorithm.Strategy)) {
	level := algorithm.Limit{Count: count, Period: 10 * time.Second, Burst: count}
	window := algorithm.Limit{Count: count, Period: 10 * time.Second}
	for name, c := range map[string]struct {
		build algorithmtest.New
		limit algorithm.Limit
	}{
		"tokenbucket":   {algorithmtest.Of(tokenbucket.New), level},
		"leaky":         {algorithmtest.Of(leaky.New), level},
		"fixedwindow":   {algorithmtest.Of(fixedwindow.New), window},
		"slidingwindow": {algorithmtest.Of(slidingwindow.New), window},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := c.build(c.limit)
			if err != nil {
				t.Fatal(err)
			}
			test(t, st)
		})
	}
}

// A negative cost is denied and mints nothing; a cost of 0 charges nothing and passes, also where nothing is left.
func TestCase_C7_NegativeAndZeroCost(t *testing.T) {
	each(t, 10, func(t *testing.T, st algorithm.Strategy) {
		const now = 1_700_000_000_000_000
		s, d := st.Take(algorithm.State{}, now, 10)
		if !d.Allowed || d.Remaining != 0 {
			t.Fatalf("drain: %+v", d)
		}
		for _, n := range []int64{-1, -10, -algorithm.Bound, math.MinInt64} {
			next, d := st.Take(s, now, n)
			if d.Allowed || d.RetryAfter != algorithm.Never || next != s {
				t.Errorf("Take(%d) is %+v, keeps %v: want denied for ever, state %v", n, d, next, s)
			}
		}
		if next, d := st.Take(s, now, 0); !d.Allowed || d.Charged != 0 || d.Remaining != 0 || next != s {
			t.Errorf("Take(0) is %+v, keeps %v", d, next)
		}
		if _, d := st.Take(s, now, 1); d.Allowed {
			t.Errorf("Take(1) is %+v: want still denied", d)
		}
	})
}

// Each admitted call counts, also where the clock stands still.
func TestCase_E3_FrozenClock(t *testing.T) {
	each(t, 5, func(t *testing.T, st algorithm.Strategy) {
		var s algorithm.State
		admitted := 0
		for range 20 {
			next, d := st.Take(s, 1_700_000_000_000_000, 1)
			if s = next; d.Allowed {
				admitted++
			}
		}
		if admitted != 5 {
			t.Errorf("%d of 20 admitted: want 5", admitted)
		}
		_, d := st.Take(algorithm.State{}, 1_700_000_000_000_000, 3)
		if d.Remaining != 2 {
			t.Errorf("3 of 5: %+v: want 2 remaining", d)
		}
	})
}

// The first call passes at any time that a clock can show.
func TestCase_F5_ZeroTime(t *testing.T) {
	each(t, 5, func(t *testing.T, st algorithm.Strategy) {
		for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(1, 0), time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			s, d := st.Take(algorithm.State{}, algorithm.Clock(at), 5)
			if !d.Allowed {
				t.Errorf("at %v: %+v", at, d)
			}
			if _, d := st.Take(s, algorithm.Clock(at), 1); d.Allowed {
				t.Errorf("at %v, one more: %+v", at, d)
			}
		}
	})
}

// As many pass as the limit says, for limits on both sides of a change of length in decimal digits.
func TestCase_H7_NumbersNotStrings(t *testing.T) {
	for _, count := range []int64{9, 10, 11, 99, 100, 101, 1000, 10_000} {
		each(t, count, func(t *testing.T, st algorithm.Strategy) {
			var s algorithm.State
			admitted := int64(0)
			for range count + 5 {
				next, d := st.Take(s, 1_700_000_000_000_000, 1)
				if s = next; d.Allowed {
					admitted++
				}
			}
			if admitted != count {
				t.Errorf("%d admitted: want %d", admitted, count)
			}
		})
	}
}
