package failover_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

// plenty is a limit that denies nothing in a benchmark.
var plenty = bucket(1<<30, time.Second)

// closed is a guard whose primary answers; open is one whose primary does not.
func closed(t testing.TB) *pair { return newPair(t, failover.Options{}) }

func open(t testing.TB) *pair {
	p := newPair(t, failover.Options{OpenFor: time.Hour})
	p.trip(t, plenty)
	return p
}

// A guard allocates nothing of its own on keys that it knows.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, s := range map[string]sluice.Store{
		"closed": closed(t).Store, "open": open(t).Store,
		"open, allow": func() sluice.Store { p := open(t); return p.Guard(p.primary, failover.AllowAll{}) }(),
		"open, deny":  func() sluice.Store { p := open(t); return p.Guard(p.primary, failover.DenyAll{}) }(),
		"closed after an outage": func() sluice.Store {
			p := newPair(t, failover.Options{OpenFor: time.Millisecond})
			take(t, p.Store, ask(plenty, "a", 1))
			p.trip(t, plenty)
			p.primary.off.Store(false)
			for p.State() != failover.Closed {
				take(t, p.Store, ask(plenty, "a", 1))
			}
			return p.Store
		}(),
	} {
		for n := range 2 * 1024 { // the table of charges fills
			take(t, s, ask(plenty, "a", int64(n%3)))
			time.Sleep(time.Microsecond)
		}
		for what, a := range map[string]sluice.Ask{"a charge": ask(plenty, "a", 1), "a denial": ask(plenty, "a", 1<<40), "a peek": mode(ask(plenty, "a", 1), sluice.Peek, 0)} {
			if got := testing.AllocsPerRun(1000, func() {
				if _, err := s.Take(ctx, a); err != nil {
					t.Fatal(err)
				}
			}); got != 0 {
				t.Errorf("%s: %s allocates %v times, want none", name, what, got)
			}
		}
	}
}

// Once open, a decision costs at most 3 times a bare local one.
func TestOpenCost(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("measures time")
	}
	cost := func(s sluice.Store) time.Duration {
		least := time.Hour
		for range 5 {
			const n = 20_000
			start := time.Now()
			for range n {
				if _, err := s.Take(t.Context(), ask(plenty, "a", 1)); err != nil {
					t.Fatal(err)
				}
			}
			least = min(least, time.Since(start)/n)
		}
		return least
	}
	bare := cost(local.NewBuckets(local.BucketsOptions{}))
	b := failover.New(failover.Options{TripAfter: 1, OpenFor: time.Hour})
	defer b.Close()
	s := b.Guard(&fake{f: fails}, local.NewBuckets(local.BucketsOptions{Share: b.Share}))
	take(t, s, ask(plenty, "a", 1))
	opened := cost(s)
	t.Logf("buckets %v, open guard %v: %.2f times", bare, opened, float64(opened)/float64(bare))
	if opened > 3*bare {
		t.Errorf("open: %v, want at most 3 times the bare %v", opened, bare)
	}
}

func BenchmarkTake(b *testing.B) {
	primary := func(context.Context) error { return nil }
	buckets := func() sluice.Store { return local.NewBuckets(local.BucketsOptions{}) }
	none := &fake{f: primary}
	guarded := func(o failover.Options, primary, fallback sluice.Store) sluice.Store {
		br := failover.New(o)
		b.Cleanup(func() { _ = br.Close() })
		return br.Guard(primary, fallback)
	}
	server := redistest.Shared(b)
	onRedis := redis.New(server.Client(), redis.Options{Prefix: "bench", Timeout: time.Second})
	for _, c := range []struct {
		name  string
		store sluice.Store
	}{
		{"a store that does nothing", none},
		{"guarded, closed, buckets", guarded(failover.Options{}, none, buckets())},
		{"guarded, closed, deny", guarded(failover.Options{}, none, failover.DenyAll{})},
		{"buckets", buckets()},
		{"local", local.New(local.Options{})},
		{"guarded, open, buckets", guarded(failover.Options{TripAfter: 1, OpenFor: time.Hour}, &fake{f: fails}, buckets())},
		{"guarded, open, local", guarded(failover.Options{TripAfter: 1, OpenFor: time.Hour}, &fake{f: fails}, local.New(local.Options{}))},
		{"guarded, open, deny", guarded(failover.Options{TripAfter: 1, OpenFor: time.Hour}, &fake{f: fails}, failover.DenyAll{})},
		{"redis", onRedis},
		{"guarded, closed, redis", guarded(failover.Options{}, onRedis, buckets())},
	} {
		for _, keys := range []int{1, 10_000} {
			asks := make([]sluice.Ask, keys)
			for i := range asks {
				asks[i] = ask(plenty, fmt.Sprint("203.0.113.", i), 1)
			}
			b.Run(fmt.Sprintf("%s/keys=%d", c.name, keys), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					if _, err := c.store.Take(context.Background(), asks[i%keys]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
