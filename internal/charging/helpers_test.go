package charging_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// newStore is a store whose time stands.
func newStore() *local.Store {
	return local.New(local.Options{Clock: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }})
}

// ledger is a store that keeps a list of what it was asked, a call of it after the other.
type ledger struct {
	*local.Store
	mu    sync.Mutex
	calls [][]sluice.Ask
	fails func(asks []sluice.Ask) error // nil: never
}

func (l *ledger) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if err := l.note([]sluice.Ask{a}); err != nil {
		return sluice.Decision{}, err
	}
	return l.Store.Take(ctx, a)
}

func (l *ledger) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := l.note(asks); err != nil {
		return sluice.Verdict{}, err
	}
	return l.Store.TakeAll(ctx, asks)
}

func (l *ledger) note(asks []sluice.Ask) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, asks)
	if l.fails != nil {
		return l.fails(asks)
	}
	return nil
}

// asked are the calls since it was last asked for, each as the rules of its keys with the units.
func (l *ledger) asked() (calls []map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, asks := range l.calls {
		units := map[string]int64{}
		for _, a := range asks {
			units[a.Key.Rule+" "+a.Key.Subject] += a.N
		}
		calls = append(calls, units)
	}
	l.calls = nil
	return calls
}

// left is what would pass of a key now.
func left(t *testing.T, s sluice.Store, a sluice.Ask) int64 {
	t.Helper()
	a.Mode, a.N = sluice.Peek, 0
	d, err := s.Take(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func newRules(t testing.TB, rules ...policy.RuleConfig) *policy.Rules {
	t.Helper()
	r, err := policy.New(policy.Config{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// window is a fixed window of an hour.
func window(name string, count int64, subject string) policy.LimitConfig {
	return policy.LimitConfig{Name: name, Algorithm: "fixed_window", Limit: sluice.Limit{Count: count, Period: time.Hour}, Subject: subject}
}

func shadow(l policy.LimitConfig) policy.LimitConfig {
	l.Shadow = true
	return l
}

// from is a request of a client.
func from(addr, path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = addr + ":1"
	return r
}
