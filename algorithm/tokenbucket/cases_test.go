package tokenbucket_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// key is one subject's state under a limit that may be edited, at a virtual time.
type key struct {
	t      *testing.T
	bucket *tokenbucket.Bucket
	state  algorithm.State
	now    int64 // µs
}

func newKey(t *testing.T, count int64, period time.Duration, burst int64) *key {
	t.Helper()
	k := &key{t: t, now: 1_700_000_000_000_000}
	k.edit(count, period, burst)
	return k
}

func (k *key) edit(count int64, period time.Duration, burst int64) {
	k.t.Helper()
	b, err := tokenbucket.New(algorithm.Limit{Count: count, Period: period, Burst: burst})
	if err != nil {
		k.t.Fatal(err)
	}
	k.bucket = b
}

func (k *key) take(n int64) algorithm.Decision {
	var d algorithm.Decision
	k.state, d = k.bucket.Take(k.state, k.now, n)
	return d
}

func (k *key) wait(d time.Duration) { k.now += int64(d / time.Microsecond) }

// A caller that waits RetryAfter is admitted, at any rate.
func TestCase_A1_RetryAfterIsEnough(t *testing.T) {
	for i := int64(1); i <= 2000; i++ {
		k := newKey(t, i, time.Hour, 1)
		k.take(1)
		k.wait(time.Millisecond)
		d := k.take(1)
		k.wait(d.RetryAfter)
		if got := k.take(1); d.Allowed || !got.Allowed {
			t.Errorf("%d per hour: %+v, and after RetryAfter %+v", i, d, got)
		}
	}
}

// An idle bucket is full, never negative, however long it was idle.
func TestCase_A3_IdleForLong(t *testing.T) {
	for _, l := range []algorithm.Limit{
		{Count: 1_000_000_000, Period: time.Second, Burst: 1_000_000_000},
		{Count: 1, Period: time.Hour, Burst: 3},
	} {
		for _, idle := range []time.Duration{12 * time.Hour, 30 * 24 * time.Hour, 85 * 365 * 24 * time.Hour} {
			k := newKey(t, l.Count, l.Period, l.Burst)
			for range 3 {
				k.take(l.Burst)
				k.wait(idle)
				k.now = min(k.now, algorithm.Bound-1) // a clock ends in 2112
				if d := k.take(1); !d.Allowed || d.Remaining != l.Burst-1 {
					t.Errorf("%v idle for %v: %+v: want %d remaining", l, idle, d, l.Burst-1)
				}
				k.state = algorithm.State{}
				k.now = 1_700_000_000_000_000
			}
		}
	}
}

// The long-run rate is Count per Period, with no rounding per token.
func TestCase_A9_RateIsExact(t *testing.T) {
	k := newKey(t, 700_000, time.Second, 2_000_000)
	k.take(2_000_000)
	k.wait(time.Second)
	if a, b := k.take(700_000), k.take(1); !a.Allowed || b.Allowed {
		t.Errorf("after 1 s: 700000 %+v, one more %+v", a, b)
	}
}

// Polling does not delay the refill.
func TestCase_C3_PollingDoesNotDelay(t *testing.T) {
	k := newKey(t, 1, time.Second, 5)
	k.take(5)
	for waited := time.Duration(0); waited < 5*time.Second; waited += 100 * time.Millisecond {
		if d := k.take(5); d.Allowed || d.RetryAfter != 5*time.Second-waited {
			t.Fatalf("after %v: %+v: want denied for %v", waited, d, 5*time.Second-waited)
		}
		k.wait(100 * time.Millisecond)
	}
	if d := k.take(5); !d.Allowed {
		t.Errorf("after 5 s: %+v", d)
	}
}

// A cost above the burst can never pass, and says so.
func TestCase_C5_AboveBurst(t *testing.T) {
	k := newKey(t, 3, 2*time.Second, 3)
	d := k.take(4)
	if d.Allowed || d.RetryAfter != algorithm.Never || d.Remaining != 3 || k.state != (algorithm.State{}) {
		t.Errorf("4 of 3: %+v, state %v", d, k.state)
	}
	if d := k.take(3); !d.Allowed {
		t.Errorf("then 3: %+v", d)
	}
}

// A caller that waits the whole seconds of a header, rounded up, is admitted.
func TestCase_D1_WholeSecondsRoundedUp(t *testing.T) {
	for _, count := range []int64{1, 3, 7, 10, 60, 999, 1001} {
		for _, period := range []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour} {
			for _, offset := range []time.Duration{0, time.Microsecond, 333 * time.Millisecond, 400 * time.Millisecond} {
				k := newKey(t, count, period, 1)
				k.take(1)
				k.wait(min(offset, period/time.Duration(count)/2))
				d := k.take(1)
				seconds := (d.RetryAfter + time.Second - 1) / time.Second
				if d.Allowed || seconds < 1 {
					t.Fatalf("%d per %v: %+v, header %d", count, period, d, seconds)
				}
				k.wait(seconds * time.Second)
				if got := k.take(1); !got.Allowed {
					t.Errorf("%d per %v: denied after %d s: %+v", count, period, seconds, got)
				}
			}
		}
	}
}

// Times are of this bucket's own state: 30 s after one call, 60 s after two.
func TestCase_D3_ResetAfter(t *testing.T) {
	k := newKey(t, 2, time.Minute, 2)
	if d := k.take(1); d.ResetAfter != 30*time.Second || d.RetryAfter != 0 {
		t.Errorf("first: %+v", d)
	}
	if d := k.take(1); d.ResetAfter != time.Minute || d.RetryAfter != 0 {
		t.Errorf("second: %+v", d)
	}
	if d := k.take(1); d.Allowed || d.RetryAfter != 30*time.Second {
		t.Errorf("third: %+v", d)
	}
}

// A denial waits for one token, not for the whole burst.
func TestCase_D5_WaitForOneToken(t *testing.T) {
	k := newKey(t, 1, time.Second, 10)
	k.take(10)
	if d := k.take(1); d.RetryAfter != time.Second || d.ResetAfter != 10*time.Second {
		t.Errorf("drained: %+v", d)
	}
}

// Idle time while full is not credited later.
func TestCase_E7_IdleWhileFull(t *testing.T) {
	for _, idle := range []time.Duration{5 * time.Second, 24 * time.Hour} {
		k := newKey(t, 20, time.Second, 100)
		k.take(1)
		k.wait(idle)
		if a, b := k.take(100), k.take(1); !a.Allowed || b.Allowed {
			t.Errorf("idle for %v: 100 %+v, one more %+v", idle, a, b)
		}
	}
}

// Burst + Count·t/Period is the bound: up to 34 of 17 in 30 s.
func TestCase_E9_BurstAddsToRate(t *testing.T) {
	k := newKey(t, 17, 30*time.Second, 17)
	admitted := 0
	for range 60 {
		if k.take(1).Allowed {
			admitted++
		}
		k.wait(500 * time.Millisecond)
	}
	if admitted > 34 || admitted < 32 {
		t.Errorf("%d admitted in 30 s: want 32 to 34", admitted)
	}
}

// A late stamp does not rewind the stored time, so nothing is credited twice.
func TestCase_F1_LateStamp(t *testing.T) {
	k := newKey(t, 2, time.Second, 4)
	admitted := 0
	try := func(n int) {
		for range n {
			if k.take(1).Allowed {
				admitted++
			}
		}
	}
	try(5)
	k.wait(-10 * time.Second)
	try(1)
	k.wait(10 * time.Second)
	try(4)
	if admitted != 4 {
		t.Errorf("%d admitted: want 4", admitted)
	}
}

// Two callers' clocks, 20 s apart, on one key: the bound holds for the time that passed plus their skew.
func TestCase_F1_TwoClocks(t *testing.T) {
	k := newKey(t, 2, time.Second, 4)
	admitted := 0
	for range 600 {
		for _, skew := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			k.wait(skew)
			if k.take(1).Allowed {
				admitted++
			}
			k.wait(-skew)
		}
		k.wait(100 * time.Millisecond)
	}
	if most := 4 + 2*(60+20); admitted > most || admitted < 2*60 {
		t.Errorf("%d admitted in 60 s: want 120 to %d", admitted, most)
	}
}

// Negative elapsed time counts as none: it drains nothing.
func TestCase_F3_ClockBack(t *testing.T) {
	k := newKey(t, 1, time.Second, 5)
	if d := k.take(1); d.Remaining != 4 {
		t.Errorf("first: %+v", d)
	}
	k.wait(-time.Hour)
	if d := k.take(1); !d.Allowed || d.Remaining != 3 {
		t.Errorf("an hour back: %+v", d)
	}
}

// A smaller burst counts at the next call.
func TestCase_G1_SmallerBurst(t *testing.T) {
	k := newKey(t, 100, time.Second, 100)
	k.take(1)
	k.edit(10, time.Second, 10)
	if d := k.take(1); d.Limit != 10 || d.Remaining > 9 {
		t.Errorf("shrunk to 10: %+v", d)
	}
}

// A raised limit counts at once: no wait of the slow rate remains.
func TestCase_G3_RaisedRate(t *testing.T) {
	k := newKey(t, 10, time.Hour, 10)
	k.take(10)
	k.edit(10, time.Minute, 10)
	if d := k.take(1); d.Allowed || d.RetryAfter != 6*time.Second {
		t.Errorf("raised: %+v: want RetryAfter 6s", d)
	}
}

// A burst or a rate of 0 is refused, and means neither all nor nothing.
func TestCase_G7_ZeroIsRefused(t *testing.T) {
	for _, l := range []algorithm.Limit{{Count: 1, Period: time.Second}, {Count: 0, Period: time.Second, Burst: 1}} {
		if _, err := tokenbucket.New(l); err == nil {
			t.Errorf("New(%+v): no error", l)
		}
	}
}

// Two limits on one key for a long time, each asked at each turn: a rolling deploy.
func TestRollingDeploy(t *testing.T) {
	const took = 200_000 // µs
	odd, err := tokenbucket.New(algorithm.Limit{Count: 999_983, Period: time.Second, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []algorithm.Limit{
		{Count: 65_535, Period: time.Second, Burst: 100},
		{Count: 1001, Period: time.Hour, Burst: 1000},
		{Count: 7, Period: 13 * time.Hour, Burst: 3},
	} {
		small, err := tokenbucket.New(other)
		if err != nil {
			t.Fatal(err)
		}
		var s algorithm.State
		admitted := int64(0)
		start := int64(1_700_000_000_000_000)
		for now := start; now < start+took; {
			for i, b := range []*tokenbucket.Bucket{odd, small, odd} {
				next, d := b.Take(s, now, 1)
				if s = next; d.Allowed {
					admitted++
				} else if i == 2 {
					now += max(1, int64(d.RetryAfter/time.Microsecond))
				}
			}
		}
		most := 1000 + int64(999_983*took/1_000_000)
		least := other.Burst + other.Count*took/int64(other.Period/time.Microsecond)
		if admitted > most || admitted < least*98/100 {
			t.Errorf("999983/s and %v together admit %d: want %d to %d", other, admitted, least*98/100, most)
		}
	}
}
