// Package load calls limiters from many goroutines at once and measures them, in interleaved rounds.
package load

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sluice-go/sluice/bench/contender"
)

const (
	longest = int64(20 * time.Second) // latency that a recorder holds; longer ones count as this
	digits  = 2                       // of a latency
	between = 64                      // calls between two times that a caller lets others run
	trial   = 50 * time.Millisecond   // to see how fast a contender is
	fast    = 500_000                 // calls a second from which on not every one is timed
	rarely  = 64                      // calls of such a contender between two that are
)

// caller is one goroutine's own: nothing of it is shared while it runs.
type caller struct {
	keys    []string
	pick    *rand.PCG
	times   *hdrhistogram.Histogram // ns
	allowed int64
	denied  int64
	errors  int64
	err     error // the first
}

func newCaller(seed uint64, keys []string) *caller {
	return &caller{keys: keys, pick: rand.NewPCG(seed, 7), times: hdrhistogram.New(1, longest, digits)}
}

// run calls take until stop, and records the time of every sample-th call. A caller that never waits for the network
// would keep the only processor for 10 ms at a time, so that others' replies lie unread; it gives way now and then.
func (c *caller) run(ctx context.Context, take func(context.Context, string) (bool, error), sample int, stop *atomic.Bool) {
	for i := 1; !stop.Load(); i++ {
		key := c.keys[0]
		if len(c.keys) > 1 {
			key = c.keys[c.pick.Uint64()%uint64(len(c.keys))]
		}
		var start time.Time
		timed := i%sample == 0
		if timed {
			start = time.Now()
		}
		allowed, err := take(ctx, key)
		if timed {
			_ = c.times.RecordValue(min(max(int64(time.Since(start)), 1), longest))
		}
		switch {
		case err != nil:
			c.errors++
			if c.err == nil {
				c.err = err
			}
		case allowed:
			c.allowed++
		default:
			c.denied++
		}
		if i%between == 0 {
			runtime.Gosched()
		}
	}
}

func (c *caller) reset() {
	c.times.Reset()
	c.allowed, c.denied, c.errors, c.err = 0, 0, 0, nil
}

// warm fills pools, lets the server learn scripts, takes every key once, so that all are known, and tries how fast it
// goes: it returns every how many calls one is to be timed. Reading the clock costs a tenth of the fastest calls.
func warm(ctx context.Context, l contender.Limiter, callers []*caller) (sample int, err error) {
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() {
			for k := i; k < len(c.keys) || k == i; k += len(callers) {
				_, _ = l.Take(ctx, c.keys[k%len(c.keys)])
			}
		})
	}
	wg.Wait()
	for _, c := range callers {
		c.reset()
	}
	took := together(callers, trial, func(c *caller, stop *atomic.Bool) { c.run(ctx, l.Take, 1, stop) })
	calls := int64(0)
	for _, c := range callers {
		calls += c.allowed + c.denied + c.errors
	}
	if float64(calls)/took.Seconds() > fast {
		return rarely, ctx.Err()
	}
	return 1, ctx.Err()
}
