// Package inprocess measures limiters that decide in this process: this module's local store and its peers.
package inprocess

import (
	"context"
	"sync"
	"time"

	"github.com/go-chi/httprate"
	gorate "github.com/sethvargo/go-limiter/memorystore"
	throttled "github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
)

// Contender is one way to limit in process.
type Contender struct {
	Name  string
	About string
	Keyed bool // false: one limit for all, shown for orientation
	Ours  bool
	Open  func(count int) (Limiter, error) // units in a period, and at one instant
}

// Limiter is a contender at work. It is safe for concurrent use.
type Limiter struct {
	Take  func(key string) (allowed bool)
	Close func() // nil: nothing to stop
}

const (
	plenty = 1_000_000           // units in a period for each key where decisions are timed: nothing is denied,
	period = 30 * 24 * time.Hour // and no key is as good as new, and forgotten, before its contender's next turn
)

// Main is the name of ours.
const Main = "sluice"

// All returns every contender.
func All() []Contender {
	return []Contender{
		{Main, "store/local", true, true, openSluice},
		{"go-limiter", "sethvargo/go-limiter, memorystore", true, false, openGoLimiter},
		{"ulule", "ulule/limiter v3, memory store", true, false, openUlule},
		{"throttled", "throttled v2, memstore", true, false, openThrottled},
		{"httprate", "go-chi/httprate's local counter, behind a mutex as its middleware has it, without headers", true, false, openHTTPRate},
		{"x/time, mutex", "a map of x/time/rate behind a mutex", true, false, openMutexMap},
		{"x/time, sync.Map", "a sync.Map of x/time/rate", true, false, openSyncMap},
		{"x/time, one", "a single x/time/rate", false, false, openOne},
		{"uber, one", "a single uber ratelimit, which waits rather than denies, at 1e9/s", false, false, openUber},
	}
}

func openSluice(count int) (Limiter, error) {
	st, err := tokenbucket.New(sluice.Limit{Count: int64(count), Period: period, Burst: int64(count)})
	if err != nil {
		return Limiter{}, err
	}
	l := sluice.New(local.New(local.Options{}), st, "bench")
	ctx := context.Background()
	return Limiter{Take: func(key string) bool {
		d, err := l.Allow(ctx, key)
		return err == nil && d.Allowed
	}}, nil
}

func openGoLimiter(count int) (Limiter, error) {
	s, err := gorate.New(&gorate.Config{Tokens: uint64(count), Interval: period})
	if err != nil {
		return Limiter{}, err
	}
	ctx := context.Background()
	return Limiter{
		Take: func(key string) bool {
			_, _, _, ok, err := s.Take(ctx, key)
			return err == nil && ok
		},
		Close: func() { _ = s.Close(ctx) },
	}, nil
}

func openUlule(count int) (Limiter, error) {
	l := ulule.New(ululememory.NewStore(), ulule.Rate{Period: period, Limit: int64(count)})
	ctx := context.Background()
	return Limiter{Take: func(key string) bool {
		c, err := l.Get(ctx, key)
		return err == nil && !c.Reached
	}}, nil
}

func openThrottled(count int) (Limiter, error) {
	s, err := memstore.NewCtx(0)
	if err != nil {
		return Limiter{}, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerDuration(count, period), MaxBurst: count - 1})
	if err != nil {
		return Limiter{}, err
	}
	ctx := context.Background()
	return Limiter{Take: func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}}, nil
}

// openHTTPRate does what httprate's OnLimit does to its counter, under a mutex as there, and leaves out its headers.
func openHTTPRate(count int) (Limiter, error) {
	l := httprate.NewRateLimiter(count, period, httprate.WithLimitCounter(httprate.NewLocalLimitCounter(period)))
	var mu sync.Mutex
	return Limiter{Take: func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		_, used, err := l.Status(key)
		if err != nil || used+1 > float64(count) {
			return false
		}
		return l.Counter().IncrementBy(key, time.Now().UTC().Truncate(period), 1) == nil
	}}, nil
}

func newRate(count int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(count)/period.Seconds()), count)
}

func openMutexMap(count int) (Limiter, error) {
	var mu sync.Mutex
	m := map[string]*rate.Limiter{}
	return Limiter{Take: func(key string) bool {
		mu.Lock()
		l := m[key]
		if l == nil {
			l = newRate(count)
			m[key] = l
		}
		mu.Unlock()
		return l.Allow()
	}}, nil
}

func openSyncMap(count int) (Limiter, error) {
	var m sync.Map
	return Limiter{Take: func(key string) bool {
		l, ok := m.Load(key)
		if !ok {
			l, _ = m.LoadOrStore(key, newRate(count))
		}
		return l.(*rate.Limiter).Allow()
	}}, nil
}

func openOne(int) (Limiter, error) {
	l := rate.NewLimiter(rate.Limit(1e9), 1e9)
	return Limiter{Take: func(string) bool { return l.Allow() }}, nil
}

func openUber(int) (Limiter, error) {
	l := ratelimit.New(1e9)
	return Limiter{Take: func(string) bool { l.Take(); return true }}, nil
}
