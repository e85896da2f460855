package lab

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-go/sluice"
)

// run has all callers ask at once, in one way, and counts.
func (p *RaceParams) run(ctx context.Context, s *server, r racer, st sluice.Strategy) (Row, error) {
	m := &meter{}
	c := s.client(wire{pool: p.Pool, timeout: max(p.Timeout, connectTime), rtt: p.RTT, meter: m})
	defer c.Close()
	if err := warm(ctx, c); err != nil {
		return Row{}, err
	}
	if err := warmScript(ctx, c, st); err != nil {
		return Row{}, err
	}
	decide := r.make(c, st, p.Timeout)
	t := &raceTally{took: make(latencies, 0, p.Callers)}
	commands, trips, bytes := m.commands.Load(), m.trips.Load(), m.bytes.Load()
	waits, cpu := c.PoolStats().WaitCount, cpuTime()

	m.line.Store(newStartLine(min(p.Pool, p.Callers)))
	begin := make(chan struct{})
	var callers sync.WaitGroup
	for range p.Callers {
		callers.Go(func() {
			<-begin
			ctx, cancel := context.WithTimeout(ctx, p.Timeout)
			defer cancel()
			asked := time.Now()
			allowed, retries, err := decide(ctx)
			t.add(time.Since(asked), allowed, retries, err)
		})
	}
	start := time.Now()
	close(begin)
	if err := await(ctx, &callers, s, func() { tell(p.Progress, "%s: %d of %d callers have their answer", r.name, t.count(), p.Callers) }); err != nil {
		return Row{}, err
	}
	took := time.Since(start)

	cpu = cpuTime() - cpu
	each := func(n int64) float64 { return float64(n) / float64(max(1, t.decided)) }
	return Row{r.name, Fields{
		{"admitted", t.admitted},
		{"limit", p.Limit},
		{"decisions", t.decided},
		{"failed_calls", t.failed},
		{"commands_per_decision", each(m.commands.Load() - commands)},
		{"round_trips_per_decision", each(m.trips.Load() - trips)},
		{"retries_per_decision", each(t.retries)},
		{"bytes_per_decision", each(m.bytes.Load() - bytes)},
		{"client_cpu_us_per_decision", each(cpu.Microseconds())},
		{"pool_waits", int64(c.PoolStats().WaitCount - waits)},
		{"p50_ms", t.took.quantile(0.50)},
		{"p99_ms", t.took.quantile(0.99)},
		{"decisions_per_second", float64(t.decided) / took.Seconds()},
	}}, nil
}

// raceTally counts what callers were told.
type raceTally struct {
	mu                                 sync.Mutex
	admitted, decided, failed, retries int64
	took                               latencies // of those that were decided
}

func (t *raceTally) add(took time.Duration, allowed bool, retries int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retries += retries
	if err != nil {
		t.failed++
		return
	}
	t.decided++
	t.took = append(t.took, took)
	if allowed {
		t.admitted++
	}
}

func (t *raceTally) count() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.decided + t.failed
}
