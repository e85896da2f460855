package failover_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

// fake is a store that does what f says.
type fake struct {
	f     func(ctx context.Context) error
	calls atomic.Int64
}

func (s *fake) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	s.calls.Add(1)
	if err := s.f(ctx); err != nil {
		return sluice.Decision{}, err
	}
	return sluice.Decision{Allowed: true, Charged: a.N, Limit: 10, Remaining: 9, ResetAfter: time.Second}, nil
}

func fails(context.Context) error { return errAway }
func works(context.Context) error { return nil }

// one is an ask that costs 1 of plenty.
var one = ask(bucket(1<<20, time.Second), "one", 1)

func guarded(t *testing.T, o failover.Options, f func(context.Context) error) (*failover.Breaker, sluice.Store, *fake) {
	b, primary := failover.New(o), &fake{f: f}
	t.Cleanup(func() { _ = b.Close() })
	return b, b.Guard(primary, local.New(local.Options{Clock: time.Now})), primary
}

// Consecutive failures open the breaker; then the primary is not asked until OpenFor has passed, and one success
// closes it.
func TestTripAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, primary := guarded(t, failover.Options{TripAfter: 3, OpenFor: 2 * time.Second}, fails)
		for range 2 {
			take(t, s, one)
		}
		primary.f = works
		take(t, s, one)
		primary.f = fails
		for range 2 {
			take(t, s, one)
		}
		state(t, b, failover.Closed) // a success in between starts the count again
		take(t, s, one)
		state(t, b, failover.Open)

		asked := primary.calls.Load()
		for range 10 {
			if d := take(t, s, one); d.Source != sluice.Local || !d.Allowed {
				t.Fatalf("open: %+v", d)
			}
		}
		time.Sleep(2 * time.Second)
		take(t, s, one)
		if primary.calls.Load() != asked {
			t.Errorf("open: asked %d times", primary.calls.Load()-asked)
		}
		time.Sleep(time.Nanosecond)
		state(t, b, failover.HalfOpen)
		take(t, s, one)
		state(t, b, failover.Open) // the probe failed
		time.Sleep(2*time.Second + 1)
		primary.f = works
		if d := take(t, s, one); d.Source != sluice.Shared {
			t.Errorf("the probe: %+v", d)
		}
		state(t, b, failover.Closed)
	})
}

// Failures that are far apart open the breaker after the documented number too.
func TestCase_J3_SparseFailuresTrip(t *testing.T) {
	for _, apart := range []time.Duration{60 * time.Millisecond, 6 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b, s, primary := guarded(t, failover.Options{TripAfter: 3, Window: 100 * time.Millisecond}, fails)
			for range 3 {
				state(t, b, failover.Closed)
				take(t, s, one)
				if primary.calls.Load() < 3 {
					time.Sleep(apart)
				}
			}
			state(t, b, failover.Open)
		})
	}
}

// A part of the calls that fail opens the breaker, of at least 20 and of those in the window alone.
func TestTripShare(t *testing.T) {
	for _, c := range []struct {
		name   string
		share  float64
		every  int // one in so many fails
		calls  int
		apart  time.Duration
		closed bool
	}{
		{"half", 0, 2, 20, 0, false},
		{"half of too few", 0, 2, 19, 0, true},
		{"a third", 0, 3, 300, 0, true},
		{"a third, of 0.3", 0.3, 3, 30, 0, false},
		{"never", 1.1, 2, 1000, 0, true},
		{"half, but too few in the window", 0, 2, 1000, time.Second, true},
		{"half in the window", 0, 2, 1000, 100 * time.Millisecond, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			b := failover.New(failover.Options{TripShare: c.share})
			defer b.Close()
			s := b.Guard(&fake{f: func(context.Context) error {
				if n++; n%c.every == 0 {
					return errAway
				}
				return nil
			}}, failover.AllowAll{}) // to which nothing is carried: a call is one call
			for range c.calls {
				take(t, s, one)
				time.Sleep(c.apart)
				if s := b.State(); s != failover.Closed {
					break
				}
			}
			if closed := b.State() == failover.Closed; closed != c.closed {
				t.Errorf("%s: the breaker is %v, want closed %v", c.name, b.State(), c.closed)
			}
		})
	}
}

// While half-open, Probes calls reach the primary, and nobody is refused because of them.
func TestHalfOpen(t *testing.T) {
	for _, probes := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			reached, release := 0, make(chan struct{})
			b, s, primary := guarded(t, failover.Options{TripAfter: 1, Probes: probes}, fails)
			take(t, s, one)
			primary.f = func(context.Context) error {
				mu.Lock()
				reached++
				mu.Unlock()
				<-release
				return nil
			}
			b.State()
			time.Sleep(time.Second + 1)
			state(t, b, failover.HalfOpen)
			var wg sync.WaitGroup
			var shared, fellBack int
			for range 100 {
				wg.Go(func() {
					d, err := s.Take(t.Context(), one)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err != nil || !d.Allowed:
						t.Errorf("half-open: %+v, %v", d, err)
					case d.Source == sluice.Shared:
						shared++
					default:
						fellBack++
					}
				})
			}
			synctest.Wait()
			if reached != probes || fellBack != 100-probes {
				t.Errorf("%d reached the primary, %d had the fallback's verdict at once; want %d and %d", reached, fellBack, probes, 100-probes)
			}
			close(release)
			wg.Wait()
			if shared != probes {
				t.Errorf("%d probes were answered, want %d", shared, probes)
			}
			state(t, b, failover.Closed)
		})
	}
}

// Cancelled callers leave the breaker closed, and a cancelled probe neither closes nor wedges it; cancellations between
// failures don't hide them.
func TestCase_J1_CancellationsAreNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b, s, primary := guarded(t, failover.Options{}, hang)
		cancelOne := func() {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			go func() { time.Sleep(time.Second); cancel() }()
			_, err := s.Take(ctx, one)
			if !errors.Is(err, context.Canceled) || errors.Is(err, sluice.ErrUnavailable) {
				t.Errorf("cancelled: %v, want context.Canceled alone", err)
			}
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(cancelOne)
		}
		wg.Wait()
		state(t, b, failover.Closed)

		primary.f = fails
		for i := range 5 {
			take(t, s, one)
			if i == 1 || i == 3 {
				primary.f = hang
				cancelOne()
				primary.f = fails
			}
		}
		state(t, b, failover.Open)

		time.Sleep(time.Second + 1)
		primary.f = hang
		for range 3 {
			cancelOne()
			state(t, b, failover.HalfOpen)
		}
		primary.f = works
		if d := take(t, s, one); d.Source != sluice.Shared {
			t.Errorf("after cancelled probes: %+v, want the primary's decision", d)
		}
		state(t, b, failover.Closed)

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		asked := primary.calls.Load()
		if _, err := s.Take(gone, one); !errors.Is(err, context.Canceled) || primary.calls.Load() != asked {
			t.Errorf("cancelled before: %v, %d calls; want context.Canceled and none", err, primary.calls.Load()-asked)
		}
	})
}

// A probe that panics, or ends its goroutine, gives its place back; a panic passes through.
func TestProbeWithoutOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, primary := guarded(t, failover.Options{TripAfter: 1}, fails)
		take(t, s, one)
		time.Sleep(time.Second + 1)
		state(t, b, failover.HalfOpen)

		primary.f = func(context.Context) error { panic("ouch") }
		for range 3 {
			func() {
				defer func() {
					if r := recover(); r != "ouch" {
						t.Errorf("recovered %v, want the primary's panic", r)
					}
				}()
				_, _ = s.Take(t.Context(), one)
				t.Error("no panic")
			}()
			state(t, b, failover.HalfOpen)
		}

		primary.f = func(context.Context) error { runtime.Goexit(); return nil }
		for range 3 {
			done, returned := make(chan struct{}), false
			go func() {
				defer close(done)
				_, _ = s.Take(t.Context(), one)
				returned = true
			}()
			<-done
			if returned {
				t.Error("a Goexit returned")
			}
			state(t, b, failover.HalfOpen)
		}

		primary.f = works
		if d := take(t, s, one); d.Source != sluice.Shared {
			t.Errorf("after probes without an outcome: %+v, want the primary's decision", d)
		}
		state(t, b, failover.Closed)
	})
}

// A caller's deadline counts as a failure once the call has waited 10 ms; the decision is the fallback's either way.
func TestShortDeadlines(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, ctx.Err())
	}
	for _, c := range []struct {
		deadline time.Duration
		want     failover.State
	}{
		{-time.Second, failover.Closed}, {time.Nanosecond, failover.Closed}, {9 * time.Millisecond, failover.Closed},
		{10 * time.Millisecond, failover.Open}, {time.Second, failover.Open},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, s, _ := guarded(t, failover.Options{OpenFor: time.Hour}, hang)
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				start := time.Now()
				d, err := s.Take(ctx, one)
				if err != nil || !d.Allowed || d.Source != sluice.Local {
					t.Fatalf("a deadline of %v: %+v, %v; want the fallback's decision", c.deadline, d, err)
				}
				if took := time.Since(start); took > max(0, c.deadline) {
					t.Fatalf("a deadline of %v: answered after %v", c.deadline, took)
				}
				cancel()
			}
			if got := b.State(); got != c.want {
				t.Errorf("100 callers with a deadline of %v: %v, want %v", c.deadline, got, c.want)
			}
		})
	}
}

// With a fallback an unusable state is no error, and says nothing of the store's health; ErrCost is the caller's.
func TestErrors(t *testing.T) {
	b, s, primary := guarded(t, failover.Options{}, func(context.Context) error { return fmt.Errorf("%w: words", sluice.ErrState) })
	for range 100 {
		if d := take(t, s, one); d.Source != sluice.Local {
			t.Fatalf("ErrState: %+v", d)
		}
	}
	state(t, b, failover.Closed)
	asked := primary.calls.Load()
	for _, a := range []sluice.Ask{ask(one.Strategy, "x", -1), {N: 1}, {Strategy: one.Strategy, Mode: 99}} {
		if d, err := s.Take(t.Context(), a); err == nil || d.Allowed {
			t.Errorf("%+v: %+v, %v; want an error", a, d, err)
		}
		if _, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{one, a}); err == nil {
			t.Errorf("TakeAll with %+v: want an error", a)
		}
	}
	if _, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{mode(one, sluice.Reset, 0)}); !errors.Is(err, sluice.ErrCost) {
		t.Errorf("Reset in TakeAll: %v, want ErrCost", err)
	}
	if primary.calls.Load() != asked {
		t.Errorf("the primary was asked %d times about asks that are wrong", primary.calls.Load()-asked)
	}
}

// Without a fallback errors pass through, and the breaker still counts.
func TestNoFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, primary := failover.New(failover.Options{}), &fake{f: fails}
		defer b.Close()
		s := b.Guard(primary, nil)
		for range 5 {
			if _, err := s.Take(t.Context(), one); err != errAway {
				t.Errorf("%v, want the primary's error", err)
			}
		}
		state(t, b, failover.Open)
		for _, m := range []sluice.Mode{sluice.Charge, sluice.Peek, sluice.UpTo, sluice.Settle, sluice.Reset} {
			if _, err := s.Take(t.Context(), mode(one, m, 0)); !errors.Is(err, sluice.ErrUnavailable) {
				t.Errorf("open, %v: %v, want ErrUnavailable", m, err)
			}
		}
		if _, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{one, one}); !errors.Is(err, sluice.ErrUnavailable) {
			t.Errorf("open, TakeAll: %v, want ErrUnavailable", err)
		}
		if primary.calls.Load() != 5 {
			t.Errorf("the primary was asked %d times, want 5", primary.calls.Load())
		}
		time.Sleep(time.Second + 1)
		primary.f = works
		if d := take(t, s, one); !d.Allowed {
			t.Errorf("%+v", d)
		}
		state(t, b, failover.Closed)
	})
}

// OnChange is told of each change in order, once, outside every lock.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *failover.Breaker
		var s sluice.Store
		var primary *fake
		var told []string
		b, s, primary = guarded(t, failover.Options{TripAfter: 1, OnChange: func(from, to failover.State) {
			told = append(told, from.String()+" to "+to.String())
			b.State() // deadlocks under gobreaker's lock
			b.Share()
			take(t, s, one)
		}}, fails)
		take(t, s, one)
		time.Sleep(time.Second + 1)
		primary.f = works
		take(t, s, one)
		take(t, s, one)
		if want := []string{"closed to open", "open to half-open", "half-open to closed"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// A panic of OnChange is the caller's, and the next change is told all the same.
func TestOnChangePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		b, s, _ := guarded(t, failover.Options{TripAfter: 1, OnChange: func(from, to failover.State) {
			if told++; told == 1 {
				panic("ouch")
			}
		}}, fails)
		func() {
			defer func() { _ = recover() }()
			take(t, s, one)
		}()
		time.Sleep(time.Second + 1)
		b.State()
		if told != 2 {
			t.Errorf("told %d times, want 2", told)
		}
	})
}

func TestStateString(t *testing.T) {
	for s, want := range map[failover.State]string{failover.Closed: "closed", failover.Open: "open", failover.HalfOpen: "half-open", 9: "state(9)"} {
		if got := s.String(); got != want {
			t.Errorf("State(%d) is %q, want %q", s, got, want)
		}
	}
}
