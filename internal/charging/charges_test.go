package charging_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/charging"
	"github.com/sluice-go/sluice/policy"
)

// metered has rules that settle, each by a header of its own, and one that doesn't.
func metered(t testing.TB) *policy.Rules {
	rule := func(name, settle string, limits ...policy.LimitConfig) policy.RuleConfig {
		cost := policy.CostConfig{Header: "X-Cost", Default: 5, Max: 20}
		return policy.RuleConfig{Name: name, Match: "/" + name, Cost: cost, Settle: settle, Limits: limits}
	}
	return newRules(t,
		rule("a", "response:x-a", window("ip", 100, "ip"), shadow(window("s", 50, "ip")), window("all", 100, "global")),
		rule("b", "response:X-B", window("ip", 100, "ip")),
		rule("b2", "response:X-B", window("ip", 100, "ip")),
		rule("plain", "", window("ip", 100, "ip"), shadow(window("s", 50, "ip"))),
		rule("shadows", "response:X-B", shadow(window("s", 50, "ip"))),
	)
}

// pass takes a call that is to pass.
func pass(t *testing.T, store sluice.Store, c charging.Call) charging.Charges {
	t.Helper()
	taken, err := c.Take(t.Context(), store)
	if err != nil || !taken.Allowed {
		t.Fatalf("%+v, %v, want it allowed", taken.Verdict, err)
	}
	return c.Pass(t.Context(), store, &taken)
}

// Shadows are taken one by one on their own keys, each for its request's cost, and what they answer changes nothing.
func TestPassTakesShadows(t *testing.T) {
	store := &ledger{Store: newStore()}
	c := call(metered(t), 0, [2]string{"192.0.2.1", "/a"}, [2]string{"192.0.2.2", "/plain"}, [2]string{"192.0.2.3", "/b"})
	c[1].Cost = 60 // more than the shadow has
	if !pass(t, store, c).Any() {
		t.Error("nothing to settle")
	}
	all := map[string]int64{"a/ip 192.0.2.1": 5, "a/all global": 5, "plain 192.0.2.2": 60, "b 192.0.2.3": 5}
	wantAsked(t, store.asked(), all, map[string]int64{"a/s 192.0.2.1": 5}, map[string]int64{"plain/s 192.0.2.2": 60})

	store.Store = newStore()
	store.fails = func(asks []sluice.Ask) error {
		if len(asks) == 1 {
			return sluice.ErrUnavailable
		}
		return nil
	}
	pass(t, store, c)
	wantAsked(t, store.asked(), all, map[string]int64{"a/s 192.0.2.1": 5}, map[string]int64{"plain/s 192.0.2.2": 60})
}

// What rules with settle charged is corrected by their own headers, in one call of the store, the shadows too.
func TestSettle(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.Header
		want []map[string]int64
	}{
		"silent":     {http.Header{}, nil},
		"as charged": {http.Header{"X-A": {"5"}, "X-B": {"5"}}, nil},
		"less":       {http.Header{"X-A": {"2"}}, []map[string]int64{{"a/ip 192.0.2.1": -3, "a/all global": -3, "a/s 192.0.2.1": -3}}},
		"more":       {http.Header{"X-B": {"9"}}, []map[string]int64{{"b 192.0.2.1": 4, "b2 192.0.2.2": 4, "shadows/s 192.0.2.1": 4}}},
		"both": {http.Header{"X-A": {"0"}, "X-B": {"99"}}, []map[string]int64{
			{"a/ip 192.0.2.1": -5, "a/all global": -5, "a/s 192.0.2.1": -5, "b 192.0.2.1": 15, "b2 192.0.2.2": 15, "shadows/s 192.0.2.1": 15},
		}},
		"unreadable": {http.Header{"X-A": {"-1"}, "X-B": {"1", "2"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := &ledger{Store: newStore()}
			charges := pass(t, store, call(metered(t), 0, [2]string{"192.0.2.2", "/plain"}, [2]string{"192.0.2.1", "/a"},
				[2]string{"192.0.2.1", "/b"}, [2]string{"192.0.2.2", "/b2"}, [2]string{"192.0.2.1", "/shadows"}))
			if got := charges.Headers(); !charges.Any() || !slices.Equal(got, []string{"X-A", "X-B"}) {
				t.Errorf("settled by %v, want X-A and X-B", got)
			}
			store.asked()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // as a call's is that has ended
			if err := charges.Settle(ctx, tt.h); err != nil {
				t.Error(err)
			}
			for _, asks := range store.calls {
				for _, a := range asks {
					if a.Mode != sluice.Settle || a.At != time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixMicro() {
						t.Errorf("%+v, want it settled at the time of the charge", a)
					}
				}
			}
			wantAsked(t, store.asked(), tt.want...)
		})
	}
}

// A settlement is bounded in time, and its error is told.
func TestSettleFails(t *testing.T) {
	store := newStore()
	stuck := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		if a.Mode != sluice.Settle {
			return store.Take(ctx, a)
		}
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a settlement without a deadline")
		}
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	charges := pass(t, stuck, call(metered(t), 0, [2]string{"192.0.2.1", "/a"}))
	if err := charges.Settle(t.Context(), http.Header{"X-A": {"9"}}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("%v, want the store's error", err)
	}
}

// What the store did not charge, or only assumed, is not settled.
func TestNothingToSettle(t *testing.T) {
	for name, d := range map[string]sluice.Decision{
		"assumed": {Allowed: true, Charged: 5, Source: sluice.Assumed},
		"free":    {Allowed: true},
		"refused": {Charged: 5},
	} {
		store := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return d, nil })
		c := call(metered(t), 0, [2]string{"192.0.2.1", "/shadows"}, [2]string{"192.0.2.1", "/a"})
		taken, err := c.Take(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		if charges := c.Pass(t.Context(), store, &taken); charges.Any() || charges.Headers() != nil {
			t.Errorf("%s: settled by %v, want nothing", name, charges.Headers())
		}
	}
	failed := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{Allowed: true, Charged: 5}, sluice.ErrUnavailable
	})
	if pass(t, failed, call(metered(t), 0, [2]string{"192.0.2.1", "/shadows"})).Any() {
		t.Error("failed: something to settle")
	}
	var none charging.Charges
	if err := none.Settle(t.Context(), http.Header{"X-A": {"9"}}); err != nil || none.Any() {
		t.Errorf("none: %v, %v", none.Any(), err)
	}
}

// Of a foreign store that answers for fewer limits than it was asked about, the rest is left alone.
func TestSettleWhatWasAnswered(t *testing.T) {
	charged := sluice.Decision{Allowed: true, Charged: 5}
	c := call(metered(t), 0, [2]string{"192.0.2.1", "/b"}, [2]string{"192.0.2.1", "/a"})
	store := foreign{sluice.Verdict{Decision: sluice.Decision{Allowed: true}, Refused: -1, Each: []sluice.Decision{charged, charged}}}
	taken, err := c.Take(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Pass(t.Context(), store, &taken).Headers(); !slices.Equal(got, []string{"X-B", "X-A"}) {
		t.Errorf("settled by %v, want X-B and X-A", got)
	}
}
