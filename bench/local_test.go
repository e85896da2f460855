package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
)

// keyed is the plain way to limit by key in process: a map of x/time/rate limiters behind a mutex.
type keyed struct {
	mu sync.Mutex
	m  map[string]*rate.Limiter
}

func (k *keyed) allow(key string) bool {
	k.mu.Lock()
	l := k.m[key]
	if l == nil {
		l = rate.NewLimiter(1000, 1000)
		k.m[key] = l
	}
	k.mu.Unlock()
	return l.Allow()
}

// TestLocalTime prints the time of a decision in process over 10,000 keys, as a ratio to a mutex-guarded map of
// x/time/rate limiters: from one goroutine, and from one for each core.
func TestLocalTime(t *testing.T) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	ctx := context.Background()
	limit := sluice.Limit{Count: 1000, Period: time.Second, Burst: 1000}
	ours := sluice.New(local.New(local.Options{}), sluice.Must(tokenbucket.New(limit)), "bench")
	peer := &keyed{m: map[string]*rate.Limiter{}}
	run := func(goroutines int, f func(key string)) float64 {
		const n = 1_000_000
		var wg sync.WaitGroup
		start := time.Now()
		for g := range goroutines {
			wg.Go(func() {
				for i := range n / goroutines {
					f(keys[(i+g*len(keys)/goroutines)%len(keys)])
				}
			})
		}
		wg.Wait()
		return float64(time.Since(start).Nanoseconds()) / n
	}
	for _, goroutines := range []int{1, runtime.GOMAXPROCS(0)} {
		var a, b []float64
		for range rounds {
			b = append(b, run(goroutines, func(k string) { peer.allow(k) }))
			a = append(a, run(goroutines, func(k string) { _, _ = ours.Allow(ctx, k) }))
		}
		t.Logf("in process, 10,000 keys, %d goroutines: %.0f ns, map of x/time/rate %.0f ns, ratio %.2f",
			goroutines, median(a), median(b), median(a)/median(b))
	}
}

// TestLocalMemory prints the bytes that a key takes.
func TestLocalMemory(t *testing.T) {
	ctx := context.Background()
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: 1000}))
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := local.New(local.Options{})
		l := sluice.New(s, st, "bench")
		for i := range n {
			if _, err := l.Allow(ctx, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("in process, %d keys: %.0f bytes a key", n, float64(after.HeapAlloc-before.HeapAlloc)/float64(n))
		runtime.KeepAlive(s)
	}
}
