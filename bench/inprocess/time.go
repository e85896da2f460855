package inprocess

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/bench/load"
)

// Keys is how many keys decisions are timed on.
const Keys = 10_000

// Time is what a contender took, by goroutines at once.
type Time struct {
	Name       string    `json:"name"`
	About      string    `json:"about"`
	Keyed      bool      `json:"keyed"`
	Goroutines int       `json:"goroutines"`
	Rounds     []float64 `json:"-"`
	Nanos      float64   `json:"ns"` // of one decision: time that passed over decisions made, median of the rounds
	Allocs     float64   `json:"allocations"`
	Bytes      float64   `json:"bytes_allocated"`
}

// Measure times every contender with so many goroutines, each calling on any of Keys keys, in interleaved rounds.
func Measure(ctx context.Context, goroutines, rounds int, length time.Duration, step func(name string)) ([]Time, error) {
	contenders := All()
	times := make([]Time, len(contenders))
	limiters := make([]Limiter, len(contenders))
	keys := load.Keys(Keys)
	for i, c := range contenders {
		l, err := c.Open(plenty)
		if err != nil {
			return nil, fmt.Errorf("inprocess: %s: %w", c.Name, err)
		}
		if l.Close != nil {
			defer l.Close()
		}
		for _, k := range keys {
			// A request's subject is never the string that its key was made of: comparing that with itself would be free.
			if !l.Take(strings.Clone(k)) {
				return nil, fmt.Errorf("inprocess: %s: denied %s, want nothing denied", c.Name, k)
			}
		}
		limiters[i] = l
		times[i] = Time{Name: c.Name, About: c.About, Keyed: c.Keyed, Goroutines: goroutines}
	}
	allocs, bytes := make([][]float64, len(contenders)), make([][]float64, len(contenders))
	for r := range rounds {
		for i := range contenders {
			i = (i + r) % len(contenders)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			step(contenders[i].Name)
			ns, a, b, err := round(limiters[i], keys, goroutines, length)
			if err != nil {
				return nil, fmt.Errorf("inprocess: %s: %w", contenders[i].Name, err)
			}
			times[i].Rounds = append(times[i].Rounds, ns)
			allocs[i], bytes[i] = append(allocs[i], a), append(bytes[i], b)
		}
	}
	for i := range times {
		times[i].Nanos = load.Median(times[i].Rounds)
		times[i].Allocs, times[i].Bytes = load.Median(allocs[i]), load.Median(bytes[i])
	}
	return times, nil
}

// round is the time, the allocations and the bytes of one decision.
func round(l Limiter, keys []string, goroutines int, length time.Duration) (ns, allocs, bytes float64, err error) {
	const batch = 1000 // calls between two looks at stop
	var stop, denied atomic.Bool
	var total atomic.Int64
	var wg sync.WaitGroup
	var m0, m1 runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m0)
	start := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			pick := rand.NewPCG(uint64(g), 7)
			n := int64(0)
			for ; !stop.Load(); n += batch {
				for range batch {
					if !l.Take(keys[pick.Uint64()%uint64(len(keys))]) {
						denied.Store(true)
					}
				}
			}
			total.Add(n)
		})
	}
	timer := time.AfterFunc(length, func() { stop.Store(true) })
	wg.Wait()
	took := time.Since(start)
	timer.Stop()
	runtime.ReadMemStats(&m1)
	if denied.Load() {
		return 0, 0, 0, errors.New("denied, want nothing denied")
	}
	n := float64(max(total.Load(), 1))
	return float64(took.Nanoseconds()) / n, float64(m1.Mallocs-m0.Mallocs) / n, float64(m1.TotalAlloc-m0.TotalAlloc) / n, nil
}
