package failover_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
)

// What the stores without state answer, mode by mode.
func TestAssumed(t *testing.T) {
	const n = 3
	type answer struct {
		allowed            bool
		charged, remaining int64
		retryAfter         time.Duration
	}
	open := answer{true, 0, 10, 0}
	for _, c := range []struct {
		name  string
		store sluice.Store
		mode  sluice.Mode
		n     int64
		want  answer
	}{
		{"allow", failover.AllowAll{}, sluice.Charge, n, answer{true, n, 10, 0}},
		{"allow", failover.AllowAll{}, sluice.Charge, 0, open},
		{"allow", failover.AllowAll{}, sluice.Charge, 11, answer{true, 11, 10, 0}},
		{"allow", failover.AllowAll{}, sluice.UpTo, n, answer{true, n, 10, 0}},
		{"allow", failover.AllowAll{}, sluice.Peek, n, open},
		{"allow", failover.AllowAll{}, sluice.Settle, -n, open},
		{"allow", failover.AllowAll{}, sluice.Reset, 0, open},
		{"deny", failover.DenyAll{}, sluice.Charge, n, answer{false, 0, 0, time.Second}},
		{"deny", failover.DenyAll{}, sluice.Charge, 0, answer{true, 0, 0, 0}},
		{"deny", failover.DenyAll{}, sluice.Charge, 11, answer{false, 0, 0, sluice.Never}},
		{"deny", failover.DenyAll{}, sluice.UpTo, n, answer{false, 0, 0, time.Second}},
		{"deny", failover.DenyAll{}, sluice.UpTo, 0, answer{true, 0, 0, 0}},
		{"deny", failover.DenyAll{}, sluice.Peek, n, answer{false, 0, 0, time.Second}},
		{"deny", failover.DenyAll{}, sluice.Settle, -n, open},
		{"deny", failover.DenyAll{}, sluice.Reset, 0, open},
	} {
		for _, st := range []sluice.Strategy{bucket(10, time.Second), window(10, time.Second)} {
			d := take(t, c.store, mode(ask(st, "a", c.n), c.mode, 1))
			if got := (answer{d.Allowed, d.Charged, d.Remaining, d.RetryAfter}); got != c.want || d.Source != sluice.Assumed || d.Limit != 10 || d.At == 0 {
				t.Errorf("%s, %v of %d: %+v, want %+v, assumed, of 10", c.name, c.mode, c.n, d, c.want)
			}
		}
	}
}

func TestAssumedTakeAll(t *testing.T) {
	st := bucket(10, time.Second)
	asks := []sluice.Ask{ask(st, "a", 0), ask(st, "b", 2), ask(st, "c", 3)}
	v, err := failover.AllowAll{}.TakeAll(t.Context(), asks)
	if err != nil || !v.Allowed || v.Charged != 5 || v.Refused != -1 || v.Source != sluice.Assumed {
		t.Errorf("allow: %+v, %v", v, err)
	}
	v, err = failover.DenyAll{}.TakeAll(t.Context(), asks)
	if err != nil || v.Allowed || v.Charged != 0 || v.Refused != 1 || v.RetryAfter != time.Second || v.Source != sluice.Assumed {
		t.Errorf("deny: %+v, %v", v, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, s := range []sluice.Store{failover.AllowAll{}, failover.DenyAll{}} {
		if _, err := s.Take(t.Context(), ask(st, "a", -1)); !errors.Is(err, sluice.ErrCost) {
			t.Errorf("%T: n below 0: %v, want ErrCost", s, err)
		}
		if _, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{mode(asks[0], sluice.Reset, 0)}); !errors.Is(err, sluice.ErrCost) {
			t.Errorf("%T: Reset in TakeAll: %v, want ErrCost", s, err)
		}
		if d, err := s.Take(cancelled, asks[1]); !errors.Is(err, context.Canceled) || d.Allowed {
			t.Errorf("%T: cancelled: %+v, %v", s, d, err)
		}
		if d, err := s.Take(late, asks[1]); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sluice.ErrUnavailable) || d.Allowed {
			t.Errorf("%T: late: %+v, %v", s, d, err)
		}
	}
}
