package local_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

func TestConformance(t *testing.T) {
	clock := new(storetest.Clock)
	storetest.Run(t, storetest.Config{
		New:   func(*testing.T) sluice.Store { return local.New(local.Options{Clock: clock.Now}) },
		Clock: clock, Source: sluice.Local, Batcher: true, Atomic: true,
	})
}

func TestConformanceOnTheSystemsClock(t *testing.T) {
	storetest.Run(t, storetest.Config{
		New:    func(*testing.T) sluice.Store { return local.New(local.Options{}) },
		Source: sluice.Local, Batcher: true, Atomic: true,
	})
}

// With no Batcher to ask, TakeAll charges in order and gives back.
func TestConformanceOneByOne(t *testing.T) {
	clock := new(storetest.Clock)
	storetest.Run(t, storetest.Config{
		New: func(*testing.T) sluice.Store {
			return sluice.StoreFunc(local.New(local.Options{Clock: clock.Now}).Take)
		},
		Clock: clock, Source: sluice.Local,
	})
}

// A store around a store conforms as the store does.
func TestConformanceObserved(t *testing.T) {
	clock := new(storetest.Clock)
	ignore := sluice.ObserverFunc(func(context.Context, sluice.Ask, sluice.Decision, error, time.Duration) {})
	storetest.Run(t, storetest.Config{
		New: func(*testing.T) sluice.Store {
			return sluice.Observe(local.New(local.Options{Clock: clock.Now}), ignore)
		},
		Clock: clock, Source: sluice.Local, Batcher: true, Atomic: true,
	})
}

// What sweeps forget makes no difference to a store that forgets nothing.
func TestEqualToAPlainStore(t *testing.T) {
	steps := 100_000
	if testing.Short() {
		steps = 10_000
	}
	clock := new(storetest.Clock)
	storetest.Equal(t, clock,
		func(*testing.T) sluice.Store { return local.New(local.Options{Clock: clock.Now}) },
		func(*testing.T) sluice.Store { return newPlain(clock.Now) }, steps)
}

// 16 keys are all that Equal asks for: so many are room enough.
func TestEqualAtTheCap(t *testing.T) {
	clock := new(storetest.Clock)
	storetest.Equal(t, clock,
		func(*testing.T) sluice.Store { return local.New(local.Options{Clock: clock.Now, MaxKeys: 16}) },
		func(*testing.T) sluice.Store { return newPlain(clock.Now) }, 20_000)
}

// The system's clock is read to the µs, and neither sweeps nor parts of a µs make RetryAfter a tick short.
func TestRetryAfterOnTheSystemsClock(t *testing.T) {
	for _, phase := range []time.Duration{0, 1, 499, 500, 999} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(phase)
			l := sluice.New(local.New(local.Options{}), bucket(997, time.Second, 1), "rule")
			for i := range 2000 {
				time.Sleep(time.Duration(i*7919%100_003) * 13)
				if _, err := l.Allow(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				d, err := l.Allow(t.Context(), "a")
				if err != nil || d.Allowed || d.RetryAfter <= 0 || d.At != time.Now().UnixMicro() {
					t.Fatalf("phase %d, round %d at %d: %+v, %v", phase, i, time.Now().UnixNano(), d, err)
				}
				if i%20 == 0 {
					d.RetryAfter += 5 * time.Second // past a sweep
				}
				time.Sleep(d.RetryAfter)
				if d, err := l.Allow(t.Context(), "a"); err != nil || !d.Allowed {
					t.Fatalf("phase %d, round %d, after RetryAfter: %+v, %v", phase, i, d, err)
				}
			}
		})
	}
}

func TestDoneContext(t *testing.T) {
	s := local.New(local.Options{})
	l := sluice.New(s, bucket(1, time.Hour, 5), "rule")
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx         context.Context
		is, isnt    error
		unavailable bool
	}{
		{late, context.DeadlineExceeded, context.Canceled, true},
		{gone, context.Canceled, context.DeadlineExceeded, false},
	} {
		_, one := l.Allow(c.ctx, "a")
		_, all := s.TakeAll(c.ctx, []sluice.Ask{l.Ask("a", 1)})
		for _, err := range []error{one, all} {
			if !errors.Is(err, c.is) || errors.Is(err, c.isnt) || errors.Is(err, sluice.ErrUnavailable) != c.unavailable {
				t.Errorf("%v, want %v", err, c.is)
			}
		}
	}
	if s.Len() != 0 {
		t.Errorf("%d keys kept of calls that failed", s.Len())
	}
}
