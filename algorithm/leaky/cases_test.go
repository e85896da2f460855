package leaky_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/leaky"
)

// admits asks for one unit at a time, that often, that far apart, and counts what passes in each second.
func admits(t *testing.T, q *leaky.Queue, s *algorithm.State, from time.Duration, times int, apart time.Duration) []int {
	t.Helper()
	perSecond := make([]int, int(time.Duration(times)*apart/time.Second)+1)
	for i := range times {
		at := time.Duration(i) * apart
		next, d := q.Take(*s, 1_700_000_000_000_000+int64((from+at)/time.Microsecond), 1)
		if *s = next; d.Allowed {
			perSecond[at/time.Second]++
		}
	}
	return perSecond
}

// What leaves is in proportion to the time that passed, not only whole periods.
func TestCase_A7_LeaksSteadily(t *testing.T) {
	q, err := leaky.New(algorithm.Limit{Count: 10, Period: time.Minute, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	var s algorithm.State
	if got := admits(t, q, &s, 0, 11, 0)[0]; got != 10 {
		t.Errorf("%d of 11 found a place: want 10", got)
	}
	if got := admits(t, q, &s, 30*time.Second, 6, 0)[0]; got != 5 {
		t.Errorf("30 s later %d of 6 found a place: want 5", got)
	}
}

// The leak is constant: a full queue is not emptied when a period ends.
func TestCase_E5_ConstantLeak(t *testing.T) {
	q, err := leaky.New(algorithm.Limit{Count: 3, Period: time.Second, Burst: 3})
	if err != nil {
		t.Fatal(err)
	}
	var s algorithm.State
	total := 0
	for second, got := range admits(t, q, &s, 0, 100, 100*time.Millisecond)[:10] {
		want := 3
		if second == 0 {
			want = 5
		}
		if got != want {
			t.Errorf("second %d: %d admitted: want %d", second, got, want)
		}
		total += got
	}
	if total != 32 {
		t.Errorf("%d admitted in 10 s: want 32", total)
	}
}

// A burst or a rate of 0 is refused.
func TestCase_G7_ZeroIsRefused(t *testing.T) {
	for _, l := range []algorithm.Limit{{Count: 1, Period: time.Second}, {Count: 0, Period: time.Second, Burst: 1}} {
		if _, err := leaky.New(l); err == nil {
			t.Errorf("New(%+v): no error", l)
		}
	}
}

// No more than one unit acts in the time of one, whatever the arrivals: what acts is what came, later by its Delay.
func TestActsEvenly(t *testing.T) {
	q, err := leaky.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 5})
	if err != nil {
		t.Fatal(err)
	}
	var s algorithm.State
	last := time.Duration(-1 << 62)
	for i := range 500 {
		at := time.Duration(i) * 37 * time.Millisecond
		if i%20 > 12 {
			continue // at times nobody comes
		}
		next, d := q.Take(s, int64(at/time.Microsecond), 1)
		s = next
		if !d.Allowed {
			continue
		}
		if acts := at + d.Delay; acts-last < 100*time.Millisecond {
			t.Errorf("came at %v, acts at %v, %v after the one before: want 100ms", at, acts, acts-last)
		} else {
			last = acts
		}
	}
}
