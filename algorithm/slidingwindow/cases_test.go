package slidingwindow_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
)

// start is µs at the start of a window of 10 s, and of every period that divides it.
const start = 1_700_000_000_000_000

// key is one subject's state, asked at times after start.
type key struct {
	window *slidingwindow.Window
	state  algorithm.State
}

func newKey(t *testing.T, count int64, period time.Duration) *key {
	t.Helper()
	w, err := slidingwindow.New(algorithm.Limit{Count: count, Period: period})
	if err != nil {
		t.Fatal(err)
	}
	return &key{window: w}
}

func (k *key) take(at time.Duration, n int64) algorithm.Decision {
	var d algorithm.Decision
	k.state, d = k.window.Take(k.state, start+int64(at/time.Microsecond), n)
	return d
}

// Denied calls are not counted, so a client that retries is not locked out.
func TestCase_C1_RetryingClient(t *testing.T) {
	k := newKey(t, 5, 10*time.Second)
	total, last := 0, -1
	for second := range 40 {
		if k.take(time.Duration(second)*time.Second, 1).Allowed {
			total++
			last = second
		}
		if second-last >= 10 {
			t.Errorf("none admitted in the 10 s before second %d", second)
		}
	}
	if total != 17 {
		t.Errorf("%d admitted in 40 s: want 17", total)
	}
}

// A large cost is one addition.
func TestCase_C9_LargeCost(t *testing.T) {
	k := newKey(t, 20_000, time.Minute)
	if d := k.take(0, 10_000); !d.Allowed || d.Remaining != 10_000 {
		t.Errorf("10000 of 20000: %+v", d)
	}
}

// Remaining weighs the window before: 50 of it, 10 % into this one, and 10 of this leave 45 of 100.
func TestCase_D7_WeighsThePrevious(t *testing.T) {
	k := newKey(t, 100, 10*time.Second)
	k.take(5*time.Second, 50)
	k.take(11*time.Second, 10)
	if d := k.take(11*time.Second, 0); d.Remaining != 45 {
		t.Errorf("%+v: want 45 remaining", d)
	}
	if d := k.take(11*time.Second, 46); d.Allowed {
		t.Errorf("46: %+v", d)
	}
	if d := k.take(11*time.Second, 45); !d.Allowed {
		t.Errorf("45: %+v", d)
	}
}

// No double burst at the edge.
func TestCase_E1_Edge(t *testing.T) {
	burst := func(k *key, at time.Duration) (admitted int) {
		for range 10 {
			if k.take(at, 1).Allowed {
				admitted++
			}
		}
		return admitted
	}
	k := newKey(t, 10, 10*time.Second)
	if got := burst(k, 9900*time.Millisecond); got != 10 {
		t.Errorf("at 9.9 s %d admitted: want 10", got)
	}
	if got := burst(k, 10_100*time.Millisecond); got != 0 {
		t.Errorf("at 10.1 s %d admitted: want 0", got)
	}
	k = newKey(t, 10, 10*time.Second)
	burst(k, 9900*time.Millisecond)
	if got := burst(k, 15*time.Second); got != 5 {
		t.Errorf("at 15 s %d admitted: want 5", got)
	}
}
