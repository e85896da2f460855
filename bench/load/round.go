package load

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/server"
)

// Figures are what one round of one contender measured, or medians of several. Costs are per decision.
type Figures struct {
	Rate           float64 `json:"decisions_per_second"`
	P50            float64 `json:"p50_us"`
	P99            float64 `json:"p99_us"`
	Allocs         float64 `json:"allocations"`
	Bytes          float64 `json:"bytes_allocated"`
	ClientCPU      float64 `json:"client_cpu_us"`
	RedisCPU       float64 `json:"redis_cpu_us"`
	RedisBusy      float64 `json:"redis_busy"` // share of a core
	Scripts        float64 `json:"script_calls"`
	UsecPerCall    float64 `json:"usec_per_script_call"`
	BytesIn        float64 `json:"wire_to_redis_bytes"`
	BytesOut       float64 `json:"wire_from_redis_bytes"`
	Allowed        float64 `json:"allowed"` // share of decisions
	Errors         float64 `json:"errors"`  // share of calls
	FirstErrorText string  `json:"first_error,omitempty"`
}

// together runs every caller for d and returns how long they took.
func together(callers []*caller, d time.Duration, run func(*caller, *atomic.Bool)) time.Duration {
	var stop atomic.Bool
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range callers {
		wg.Go(func() { run(c, &stop) })
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	wg.Wait()
	timer.Stop()
	return time.Since(start)
}

// round measures one contender for d.
func round(ctx context.Context, nodes server.Nodes, l contender.Limiter, callers []*caller, sample int, d time.Duration) (Figures, error) {
	for _, c := range callers {
		c.reset()
	}
	runtime.GC() // nobody pays for the garbage of the one before
	before, err := nodes.Stats(ctx)
	if err != nil {
		return Figures{}, err
	}
	if err := nodes.Reset(ctx); err != nil {
		return Figures{}, err
	}
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	cpu := cpuTime()
	took := together(callers, d, func(c *caller, stop *atomic.Bool) { c.run(ctx, l.Take, sample, stop) })
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&m1)
	after, err := nodes.Stats(ctx)
	if err != nil {
		return Figures{}, err
	}

	times := hdrhistogram.New(1, longest, digits)
	var allowed, denied, failed int64
	var f Figures
	for _, c := range callers {
		times.Merge(c.times)
		allowed, denied, failed = allowed+c.allowed, denied+c.denied, failed+c.errors
		if c.err != nil && f.FirstErrorText == "" {
			f.FirstErrorText = c.err.Error()
		}
	}
	n := float64(max(allowed+denied, 1))
	f.Rate = float64(allowed+denied) / took.Seconds()
	f.P50, f.P99 = float64(times.ValueAtQuantile(50))/1e3, float64(times.ValueAtQuantile(99))/1e3
	f.Allocs, f.Bytes = float64(m1.Mallocs-m0.Mallocs)/n, float64(m1.TotalAlloc-m0.TotalAlloc)/n
	f.ClientCPU, f.RedisCPU = micros(cpu)/n, micros(after.CPU-before.CPU)/n
	f.RedisBusy = (after.CPU - before.CPU).Seconds() / took.Seconds()
	f.Scripts = float64(after.Scripts) / n
	f.UsecPerCall = micros(after.ScriptTime) / float64(max(after.Scripts, 1))
	f.BytesIn, f.BytesOut = float64(after.In)/n, float64(after.Out)/n
	f.Allowed = float64(allowed) / n
	f.Errors = float64(failed) / float64(max(allowed+denied+failed, 1))
	return f, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
