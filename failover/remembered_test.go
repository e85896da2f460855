package failover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

// A denial that the primary repeats without asking Redis says nothing of Redis: it closes no breaker as a probe, and
// ends no row of failures.
func TestRememberedIsNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			away = iota
			repeats
			back
		)
		now := away
		primary := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
			switch now {
			case away:
				return sluice.Decision{}, errAway
			case repeats:
				return sluice.Decision{Source: sluice.Cached, Limit: 10, RetryAfter: time.Second}, nil
			}
			return sluice.Decision{Allowed: true, Charged: 1, Limit: 10, Remaining: 9}, nil
		})
		b := failover.New(failover.Options{TripAfter: 3, OpenFor: time.Second})
		defer b.Close()
		s := b.Guard(primary, local.New(local.Options{Clock: time.Now}))
		for range 2 {
			take(t, s, one)
		}
		now = repeats
		if d := take(t, s, one); d.Source != sluice.Cached || d.Allowed {
			t.Errorf("closed: %+v: want the primary's denial", d)
		}
		if v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{one}); err != nil || v.Source != sluice.Cached {
			t.Errorf("closed: %+v, %v: want the primary's denial", v, err)
		}
		now = away
		take(t, s, one)
		state(t, b, failover.Open)
		time.Sleep(1100 * time.Millisecond)
		now = repeats
		for range 3 {
			if d := take(t, s, one); d.Source != sluice.Cached {
				t.Errorf("half-open: %+v: want the primary's denial", d)
			}
			state(t, b, failover.HalfOpen)
		}
		now = back
		if d := take(t, s, one); !d.Allowed || d.Source != sluice.Shared {
			t.Errorf("half-open: %+v: want a probe", d)
		}
		state(t, b, failover.Closed)
	})
}
