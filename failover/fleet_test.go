package failover_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

// The share is one by the most instances seen in the last minute with answers: neither an outage nor a beat that
// finds the others gone makes it larger at once.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Int64 // 0: an error
		answer.Store(4)
		b := failover.New(failover.Options{Heartbeat: func(ctx context.Context) (int, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("a beat without a deadline")
			}
			if n := answer.Load(); n != 0 {
				return int(n), nil
			}
			return 0, errors.New("away")
		}})
		defer b.Close()
		want := func(when string, instances float64) {
			t.Helper()
			synctest.Wait()
			if got := b.Share(); got != 1/instances {
				t.Errorf("%s: share %v, want 1/%v", when, got, instances)
			}
		}
		want("at first", 4)
		answer.Store(6)
		time.Sleep(time.Second)
		want("two more", 6)
		answer.Store(2)
		time.Sleep(59 * time.Second)
		want("four less, for 59 s", 6)
		answer.Store(0)
		time.Sleep(time.Hour)
		want("an hour's outage", 6)
		answer.Store(1)
		time.Sleep(time.Second)
		want("after it, before the others have called in", 2)
		answer.Store(-3)
		time.Sleep(time.Hour)
		want("answers that are none", 2)
		answer.Store(1)
		time.Sleep(2 * time.Minute)
		want("alone for two minutes", 1)
	})
}

func TestShareDefaults(t *testing.T) {
	b := failover.New(failover.Options{Heartbeat: func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }})
	if got := b.Share(); got != 1 {
		t.Errorf("before the first answer: %v, want 1", got)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	b = failover.New(failover.Options{Instances: 4, Heartbeat: func(context.Context) (int, error) { return 9, nil }})
	defer b.Close()
	if got := b.Share(); got != 0.25 {
		t.Errorf("Instances 4: %v, want 0.25", got)
	}
}

// In an outage a fleet admits the limit, not one limit each; a limit below the fleet's size has a floor of one each.
func TestCase_J5_FleetShare(t *testing.T) {
	for _, c := range []struct{ limit, most int64 }{{100, 100}, {8, 8}, {7, 4}, {3, 4}, {1, 4}} {
		synctest.Test(t, func(t *testing.T) {
			st, total := bucket(c.limit, time.Minute), int64(0)
			for range 4 {
				p := newPair(t, failover.Options{Instances: 4})
				p.primary.off.Store(true) // absent from the start
				for range 50 {
					total += take(t, p.Store, ask(st, "a", 1)).Charged
				}
			}
			t.Logf("limit %d, 4 instances: %d admitted at once", c.limit, total)
			if total > c.most || total == 0 {
				t.Errorf("limit %d: %d admitted, want at most %d", c.limit, total, c.most)
			}
		})
	}
}

// Close ends what New started, may be called again, and leaves guards that decide.
func TestClose(t *testing.T) {
	base := runtime.NumGoroutine()
	for range 1000 {
		b := failover.New(failover.Options{Heartbeat: func(context.Context) (int, error) { return 1, nil }})
		s := b.Guard(&fake{f: fails}, local.New(local.Options{}))
		for range 2 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if d, err := s.Take(t.Context(), one); err != nil || !d.Allowed {
			t.Fatalf("after Close: %+v, %v", d, err)
		}
	}
	for give := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > base+2; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), base)
		}
	}
}

// Close does not wait for ever for a Heartbeat that ignores its context.
func TestCloseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := failover.New(failover.Options{Heartbeat: func(context.Context) (int, error) { <-release; return 1, nil }})
		start := time.Now()
		if err := b.Close(); err == nil || time.Since(start) > 10*time.Second {
			t.Errorf("Close: %v after %v, want an error after 5s", err, time.Since(start))
		}
		close(release)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

var _ sluice.Batcher = failover.AllowAll{}
var _ sluice.Batcher = failover.DenyAll{}
