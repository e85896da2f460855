package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry"
)

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		d    sluice.Decision
		err  error
		want string
		from string
	}{
		{sluice.Decision{Allowed: true}, nil, "allowed", "shared"},
		{sluice.Decision{RetryAfter: time.Second, Source: sluice.Cached}, nil, "denied", "cached"},
		{sluice.Decision{RetryAfter: sluice.Never, Source: sluice.Local}, nil, "denied", "local"},
		{sluice.Decision{RetryAfter: time.Second, Source: sluice.Assumed}, nil, "denied", "assumed"},
		{sluice.Decision{Source: 77, RetryAfter: 1}, nil, "denied", "none"},
		{sluice.Decision{}, nil, "withheld", "shared"},
		{sluice.Decision{}, fmt.Errorf("x: %w", sluice.ErrUnavailable), "unavailable", "none"},
		{sluice.Decision{}, fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded), "unavailable", "none"},
		{sluice.Decision{}, context.DeadlineExceeded, "unavailable", "none"},
		{sluice.Decision{}, fmt.Errorf("x: %w", sluice.ErrState), "state", "none"},
		{sluice.Decision{}, context.Canceled, "cancelled", "none"},
		{sluice.Decision{}, sluice.ErrCost, "failed", "none"},
		{sluice.Decision{Allowed: true}, errors.New("foreign"), "failed", "none"},
	} {
		o := telemetry.OutcomeOf(t.Context(), c.d, c.err, time.Millisecond)
		if from := telemetry.SourceName(telemetry.SourceOf(c.d, o)); o.String() != c.want || from != c.from {
			t.Errorf("%+v, %v: %v from %v, want %v from %v", c.d, c.err, o, from, c.want, c.from)
		}
	}
}

// A caller's own deadline says nothing about the store before it has had 10 ms.
func TestOutcomeOfAHurriedCaller(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	deadline := fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		took time.Duration
		want telemetry.Outcome
	}{
		{over, deadline, time.Microsecond, telemetry.Cancelled},
		{over, deadline, 10*time.Millisecond - 1, telemetry.Cancelled},
		{over, deadline, 10 * time.Millisecond, telemetry.Unavailable},
		{t.Context(), deadline, time.Microsecond, telemetry.Unavailable}, // the store's own
		{over, sluice.ErrUnavailable, time.Microsecond, telemetry.Unavailable},
		{over, sluice.ErrState, time.Microsecond, telemetry.BadState},
		{over, nil, time.Microsecond, telemetry.Withheld},
	} {
		if got := telemetry.OutcomeOf(c.ctx, sluice.Decision{}, c.err, c.took); got != c.want {
			t.Errorf("%v after %v: %v, want %v", c.err, c.took, got, c.want)
		}
	}
	_, err := local.New(local.Options{}).Take(over, sluice.New(nil, sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: 1})), "r").Ask("s", 1))
	if got := telemetry.OutcomeOf(over, sluice.Decision{}, err, 0); got != telemetry.Cancelled {
		t.Errorf("the store in process: %v (%v), want cancelled", got, err)
	}
}

// In a call for several limits, the one that refuses is told from those that it holds back, before and after it.
func TestOutcomesOfARefusedCall(t *testing.T) {
	bucket := func(burst int64) sluice.Strategy {
		return sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: burst}))
	}
	for name, inner := range map[string]sluice.Store{
		"store":   local.New(local.Options{}),
		"buckets": local.NewBuckets(local.BucketsOptions{}),
		"deny":    failover.DenyAll{},
		"no batcher": sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
			return local.New(local.Options{}).Take(ctx, a)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			var got []telemetry.Outcome
			st := sluice.Observe(inner, sluice.ObserverFunc(func(ctx context.Context, _ sluice.Ask, d sluice.Decision, err error, took time.Duration) {
				got = append(got, telemetry.OutcomeOf(ctx, d, err, took))
			}))
			asks := []sluice.Ask{
				{Strategy: bucket(5), Key: sluice.Key{Rule: "a"}, N: 2},
				{Strategy: bucket(1), Key: sluice.Key{Rule: "b"}, N: 2},
				{Strategy: bucket(5), Key: sluice.Key{Rule: "c"}, N: 2},
			}
			want := "[withheld denied withheld]"
			if name == "deny" {
				want = "[denied withheld withheld]"
			}
			if _, err := sluice.TakeAll(t.Context(), st, asks); err != nil || fmt.Sprint(got) != want {
				t.Errorf("%v, %v, want %s", got, err, want)
			}
		})
	}
}
