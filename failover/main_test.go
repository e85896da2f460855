package failover_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/local"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(redistest.Tests{M: m}, goleak.IgnoreAnyFunction(child.Goroutine))
}

// bucket is a token bucket of count a period, all at once.
func bucket(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: count}))
}

func window(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(fixedwindow.New(sluice.Limit{Count: count, Period: period}))
}

func ask(st sluice.Strategy, subject string, n int64) sluice.Ask {
	return sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "api", Subject: subject}, N: n}
}

func mode(a sluice.Ask, m sluice.Mode, at int64) sluice.Ask {
	a.Mode, a.At = m, at
	return a
}

// pair is a breaker, and a guard of a store behind a switch and buckets.
type pair struct {
	*failover.Breaker
	sluice.Store
	primary  *away
	fallback sluice.Store
}

func newPair(t testing.TB, o failover.Options) *pair {
	b := failover.New(o)
	t.Cleanup(func() { _ = b.Close() })
	p := &pair{
		Breaker:  b,
		primary:  &away{store: local.New(local.Options{Clock: time.Now})},
		fallback: local.NewBuckets(local.BucketsOptions{Clock: time.Now, Share: b.Share}),
	}
	p.Store = b.Guard(p.primary, p.fallback)
	return p
}

// take asks a store, which must not fail.
func take(t testing.TB, s sluice.Store, a sluice.Ask) sluice.Decision {
	t.Helper()
	d, err := s.Take(context.Background(), a)
	if err != nil {
		t.Fatalf("%v of %d: %v", a.Mode, a.N, err)
	}
	return d
}

// remaining is how many units pass at s now.
func remaining(t testing.TB, s sluice.Store, a sluice.Ask) int64 {
	t.Helper()
	a.N, a.Mode = 0, sluice.Peek
	return take(t, s, a).Remaining
}

func state(t testing.TB, b *failover.Breaker, want failover.State) {
	t.Helper()
	if got := b.State(); got != want {
		t.Errorf("the breaker is %v, want %v", got, want)
	}
}

// trip fails calls until the breaker is open.
func (p *pair) trip(t testing.TB, st sluice.Strategy) {
	t.Helper()
	p.primary.off.Store(true)
	for range 100 {
		if p.State() == failover.Open {
			return
		}
		take(t, p.Store, ask(st, "trip", 1))
	}
	t.Fatal("100 failures do not open the breaker")
}
