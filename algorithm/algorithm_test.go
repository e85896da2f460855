package algorithm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elapsed := func(d algorithm.Decision, ctx context.Context) (time.Duration, error) {
			start := time.Now()
			err := d.Hold(ctx)
			return time.Since(start), err
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		for _, c := range []struct {
			name  string
			delay time.Duration
			ctx   context.Context
			took  time.Duration
			err   error
		}{
			{"no delay", 0, t.Context(), 0, nil},
			{"no delay, ctx done", 0, canceled, 0, nil},
			{"below zero", -time.Second, t.Context(), 0, nil},
			{"a delay", 1234567 * time.Microsecond, t.Context(), 1234567 * time.Microsecond, nil},
			{"ctx done before", time.Second, canceled, 0, context.Canceled},
			{"a deadline before the delay", time.Second, soon, -1, context.DeadlineExceeded},
		} {
			took, err := elapsed(algorithm.Decision{Allowed: true, Delay: c.delay}, c.ctx)
			if !errors.Is(err, c.err) || c.took >= 0 && took != c.took || took > 2*time.Second {
				t.Errorf("%s: held %v, %v: want %v, %v", c.name, took, err, c.took, c.err)
			}
		}
	})
}

// A deadline or a cancellation ends a Hold at its time.
func TestHoldEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		err := algorithm.Decision{Delay: time.Hour}.Hold(ctx)
		if took := time.Since(start); took != 30*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("held %v, %v: want 30ms, deadline exceeded", took, err)
		}
	})
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want int64
	}{
		{time.Time{}, 0},
		{time.Unix(0, 0), 0},
		{time.Unix(0, -1), 0},
		{time.Unix(-1<<62, 0), 0},
		{time.Unix(0, 999), 0},
		{time.Unix(0, 1000), 1},
		{time.Unix(1_700_000_000, 123_456_789), 1_700_000_000_123_456},
		{time.UnixMicro(algorithm.Bound - 1), algorithm.Bound - 1},
		{time.UnixMicro(algorithm.Bound), algorithm.Bound - 1},
		{time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC), algorithm.Bound - 1},
		{time.Unix(1<<62, 0), algorithm.Bound - 1},
	} {
		if got := algorithm.Clock(c.at); got != c.want {
			t.Errorf("Clock(%v) is %d: want %d", c.at, got, c.want)
		}
	}
}

func TestSourceString(t *testing.T) {
	for s, want := range map[algorithm.Source]string{
		algorithm.Shared: "shared", algorithm.Cached: "cached", algorithm.Local: "local", algorithm.Assumed: "assumed", 200: "unknown",
	} {
		if got := s.String(); got != want {
			t.Errorf("Source(%d) is %q: want %q", s, got, want)
		}
	}
	if (algorithm.Decision{}).Source != algorithm.Shared || (algorithm.Decision{}).Allowed {
		t.Error("the zero Decision is not a denial by the shared store")
	}
}
