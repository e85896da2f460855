package fixedwindow_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
)

// hour is µs at the start of a window of one hour, and of every period that divides it.
const hour = 1_699_999_200_000_000

func window(t *testing.T, count int64, period time.Duration) *fixedwindow.Window {
	t.Helper()
	w, err := fixedwindow.New(algorithm.Limit{Count: count, Period: period})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// Denied calls are not counted, so a raised limit helps at once.
func TestCase_C11_RaisedLimit(t *testing.T) {
	var s algorithm.State
	admit := func(w *fixedwindow.Window, calls int) (admitted int) {
		for range calls {
			next, d := w.Take(s, hour, 1)
			if s = next; d.Allowed {
				admitted++
			}
		}
		return admitted
	}
	if got := admit(window(t, 10, time.Hour), 50); got != 10 {
		t.Errorf("%d of 50 admitted: want 10", got)
	}
	if got := admit(window(t, 20, time.Hour), 50); got != 10 {
		t.Errorf("raised to 20, %d of 50 admitted: want 10", got)
	}
}

// Remaining counts down to 0 and stays there.
func TestCase_D9_Remaining(t *testing.T) {
	var s algorithm.State
	w := window(t, 3, time.Hour)
	for i, want := range []int64{2, 1, 0, 0, 0} {
		next, d := w.Take(s, hour, 1)
		s = next
		if d.Remaining != want || d.Allowed != (i < 3) {
			t.Errorf("call %d: %+v: want %d remaining", i+1, d, want)
		}
	}
}

// A window keeps its promise in each aligned period: 17 in each 30 s.
func TestCase_E9_PerAlignedWindow(t *testing.T) {
	var s algorithm.State
	w := window(t, 17, 30*time.Second)
	for i := range 10 {
		admitted := 0
		for call := range 60 {
			next, d := w.Take(s, hour+micros(time.Duration(i)*30*time.Second+time.Duration(call)*500*time.Millisecond), 1)
			if s = next; d.Allowed {
				admitted++
			}
		}
		if admitted != 17 {
			t.Errorf("window %d: %d admitted: want 17", i, admitted)
		}
	}
}

// A clock that steps back never waits longer than to the running window's end.
func TestCase_F3_ClockBack(t *testing.T) {
	w := window(t, 1, time.Minute)
	s, _ := w.Take(algorithm.State{}, hour+micros(30*time.Second), 1)
	if _, d := w.Take(s, hour+micros(10*time.Second), 1); d.Allowed || d.RetryAfter > time.Minute {
		t.Errorf("20 s back: %+v: want denied for at most 1m", d)
	}
	if _, d := w.Take(s, hour+micros(-10*time.Second), 1); d.Allowed || d.RetryAfter != 70*time.Second {
		t.Errorf("into the window before: %+v: want denied for 70s, to the running window's end", d)
	}
}

// A smaller limit counts at the next call, with what was counted.
func TestCase_G1_SmallerLimit(t *testing.T) {
	s, _ := window(t, 100, time.Hour).Take(algorithm.State{}, hour, 1)
	if _, d := window(t, 10, time.Hour).Take(s, hour, 1); d.Limit != 10 || d.Remaining != 8 {
		t.Errorf("100 edited to 10: %+v: want 8 remaining", d)
	}
}

// An edited period counts at once, in ResetAfter too.
func TestCase_G5_EditedPeriod(t *testing.T) {
	s, _ := window(t, 5, time.Hour).Take(algorithm.State{}, hour, 1)
	s, d := window(t, 5, time.Minute).Take(s, hour, 1)
	if d.ResetAfter > time.Minute || d.Remaining != 4 {
		t.Errorf("an hour edited to a minute: %+v, state %v: want a fresh minute", d, s)
	}
}
