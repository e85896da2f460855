package load

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/server"
)

// The application's own traffic: so many goroutines that each read one key and pause.
const (
	readers = 16
	pause   = 2 * time.Millisecond
)

// Traffic is what an application's GETs took beside a limiter, medians over rounds.
type Traffic struct {
	Name  string  `json:"name"`
	P50   float64 `json:"get_p50_us"`
	P99   float64 `json:"get_p99_us"`
	Reads float64 `json:"gets_per_second"`
	Rate  float64 `json:"decisions_per_second"`
}

// sharing is one way to have a limiter beside the application's client.
type sharing struct {
	name string
	open func(addr string, app goredis.UniversalClient, l sluice.Limit) (contender.Limiter, error) // nil: no limiter
}

var sharings = []sharing{
	{"no limiter", nil},
	{"redis_rate, the application's client", func(_ string, app goredis.UniversalClient, l sluice.Limit) (contender.Limiter, error) {
		return contender.RedisRate(app, l), nil
	}},
	{"sluice, the application's client", func(_ string, app goredis.UniversalClient, l sluice.Limit) (contender.Limiter, error) {
		return contender.Sluice(app, l)
	}},
	{"sluice, a client of its own (Open)", func(addr string, _ goredis.UniversalClient, l sluice.Limit) (contender.Limiter, error) {
		return contender.SluiceOpen(addr, l)
	}},
}

// Application measures the GETs of an application beside limiters that callers call without a pause, on any of 10,000
// keys.
func Application(ctx context.Context, s *server.Server, callers int, p Plan) ([]Traffic, error) {
	if err := (server.Nodes{s}).Flush(ctx); err != nil {
		return nil, err
	}
	rounds := make([][4][]float64, len(sharings))
	keys := Keys(10_000)
	for r := range p.Rounds {
		for i := range sharings {
			i = (i + r) % len(sharings)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p.Step("an application's GETs beside a limiter", sharings[i].name)
			t, err := beside(ctx, s, sharings[i], keys, callers, p.Round)
			if err != nil {
				return nil, fmt.Errorf("load: %s: %w", sharings[i].name, err)
			}
			for k, v := range []float64{t.P50, t.P99, t.Reads, t.Rate} {
				rounds[i][k] = append(rounds[i][k], v)
			}
		}
	}
	all := make([]Traffic, len(sharings))
	for i, r := range rounds {
		all[i] = Traffic{sharings[i].name, Median(r[0]), Median(r[1]), Median(r[2]), Median(r[3])}
	}
	return all, nil
}

// beside is one round of one way.
func beside(ctx context.Context, s *server.Server, way sharing, keys []string, n int, d time.Duration) (t Traffic, err error) {
	app := goredis.NewClient(&goredis.Options{Addr: s.Addr})
	defer app.Close()
	if err := app.Set(ctx, "application", "value", 0).Err(); err != nil {
		return t, err
	}
	var callers []*caller
	var l contender.Limiter
	if way.open != nil {
		if l, err = way.open(s.Addr, app, manyLimit); err != nil {
			return t, err
		}
		defer l.Close()
		for i := range n {
			callers = append(callers, newCaller(uint64(i), keys))
		}
		if err := fill(ctx, l, keys); err != nil { // warms the pool, too
			return t, err
		}
	}
	runtime.GC()
	var mu sync.Mutex
	times := hdrhistogram.New(1, longest, digits)
	var stop atomic.Bool
	var reading sync.WaitGroup
	var failed error
	for range readers {
		reading.Go(func() {
			for !stop.Load() {
				start := time.Now()
				err := app.Get(ctx, "application").Err()
				took := time.Since(start)
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				_ = times.RecordValue(min(max(int64(took), 1), longest))
				mu.Unlock()
				time.Sleep(pause)
			}
		})
	}
	start := time.Now()
	if callers == nil {
		time.Sleep(d)
	} else {
		took := together(callers, d, func(c *caller, stop *atomic.Bool) { c.run(ctx, l.Take, 1, stop) })
		for _, c := range callers {
			t.Rate += float64(c.allowed+c.denied) / took.Seconds()
		}
	}
	stop.Store(true)
	reading.Wait()
	t.Reads = float64(times.TotalCount()) / time.Since(start).Seconds()
	t.P50, t.P99 = float64(times.ValueAtQuantile(50))/1e3, float64(times.ValueAtQuantile(99))/1e3
	return t, failed
}
