// Package chaos breaks real Redis servers under load. With a fallback no decision may fail, whatever happens; the limit
// may be exceeded by no more than is stated; and Redis decides again once it is back. `make chaos` runs the long form.
package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

const (
	instances  = 2
	callers    = 8 // of each instance
	rate       = 500
	burst      = 100
	timeout    = 50 * time.Millisecond
	patience   = 500 * time.Millisecond // of clients, and of stores where nothing may time out though the machine stalls
	openFor    = 200 * time.Millisecond
	recoveryIn = 20 * time.Second // generous: machines are noisy, and a client has pools to renew
)

// phase is how long the load runs before, during and after a fault.
func phase() time.Duration {
	if os.Getenv("CHAOS") == "long" {
		return 5 * time.Second
	}
	return 400 * time.Millisecond
}

// scene is one Redis and what happens to it.
type scene struct {
	client func(instance int) goredis.UniversalClient
	clock  func(instance int) func() time.Time // nil: the server's
	hit    func()
	heal   func()
	server *goredis.Client // counts what was executed; nil where it forgets
}

// fault is one thing that may happen.
type fault struct {
	name   string
	scene  func(t *testing.T) scene
	wipes  float64 // how often Redis forgets the key: each hands out one burst more at the most
	ahead  float64 // seconds by which callers' clocks differ: each hands out that much of the rate
	closed bool    // the fault says nothing of the server's health: the breaker stays closed
}

func TestChaos(t *testing.T) {
	t.Logf("%-32s %9s %8s %8s %7s %9s %9s %7s %10s", "fault", "decisions", "shared", "local", "over", "p50", "p99", "errors", "back after")
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) { suffer(t, f) })
	}
}

// suffer puts one fault under load and checks what must hold.
func suffer(t *testing.T, f fault) {
	ctx := context.Background()
	s := f.scene(t)
	limit := sluice.Must(tokenbucket.New(sluice.Limit{Count: rate, Period: time.Second, Burst: burst}))
	var asked, tripped atomic.Int64
	var apart division
	var cause atomic.Pointer[error] // the first of Redis
	var stores [instances]sluice.Store
	for i := range instances {
		// Half of the instances share round trips and remember denials, as is usual; half do neither.
		o := redis.Options{Timeout: timeout, NoCoalescing: i%2 == 1, NoKnownDenials: i%2 == 1}
		if f.closed {
			o.Timeout = patience
		}
		if s.clock != nil {
			o.Clock = s.clock(i)
		}
		primary := redis.New(s.client(i), o)
		breaker := failover.New(failover.Options{
			Instances: instances, OpenFor: openFor, OnChange: func(_, to failover.State) {
				apart.change(i, to)
				if to == failover.Open {
					tripped.Add(1)
				}
			},
		})
		t.Cleanup(func() { _ = breaker.Close() })
		counted := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
			asked.Add(1)
			d, err := primary.Take(ctx, a)
			if err != nil {
				cause.CompareAndSwap(nil, &err)
			}
			return d, err
		})
		stores[i] = breaker.Guard(counted, local.NewBuckets(local.BucketsOptions{Share: breaker.Share}))
		if _, err := sluice.New(stores[i], limit, "warm").Allow(ctx, "up"); err != nil {
			t.Fatal(err)
		}
	}
	executed := func() int64 {
		if s.server == nil {
			return 0
		}
		return calls(t, s.server, "hmget")
	}
	before, askedBefore := executed(), asked.Load()

	var tally tally
	start := time.Now()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range instances {
		l := sluice.New(stores[i], limit, "chaos")
		for range callers {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					began := time.Now()
					d, err := l.Allow(ctx, "k")
					tally.add(d, err, time.Since(began))
					time.Sleep(time.Millisecond) // a pace, in real time, since the servers are real
				}
			})
		}
	}
	time.Sleep(phase())
	s.hit()
	time.Sleep(2 * phase())
	s.heal()
	back := recovered(stores, limit)
	time.Sleep(phase())
	close(stop)
	wg.Wait()
	took, divided := time.Since(start).Seconds(), apart.end()

	over := float64(tally.admitted) / (burst + rate*took)
	t.Logf("%-32s %9d %8d %8d %7.3f %9v %9v %7d %10v", f.name, len(tally.took), tally.from[sluice.Shared], tally.from[sluice.Local],
		over, tally.percentile(50), tally.percentile(99), len(tally.errs), back.Round(time.Millisecond))
	for _, err := range tally.errs[:min(len(tally.errs), 3)] {
		t.Errorf("a decision failed: %v", err)
	}
	// Two callers may be served by Redis and by the fallback at the same time while it is found out that Redis is gone:
	// one burst more, as for what Redis forgot. While some are served by Redis and some are not, these have their share
	// of the rate beside all of it.
	if most := burst*(2+f.wipes) + rate*(took+f.ahead+divided); float64(tally.admitted) > 1.05*most {
		t.Errorf("%d admitted in %.1f s: want at most %.0f, the fleet being divided for %.1f shares of a second",
			tally.admitted, took, 1.05*most, divided)
	}
	if back >= recoveryIn {
		t.Errorf("Redis does not decide again after %v", back)
	}
	if n := executed() - before; n > asked.Load()-askedBefore {
		t.Errorf("Redis executed %d scripts for %d calls: want each at most once", n, asked.Load()-askedBefore)
	}
	if f.closed && tripped.Load() > 0 {
		t.Errorf("the breaker opened %d times: %v", tripped.Load(), *cause.Load())
	}
}

// recovered waits until Redis decides for each instance again.
func recovered(stores [instances]sluice.Store, limit sluice.Strategy) time.Duration {
	start := time.Now()
	for _, s := range stores {
		for time.Since(start) < recoveryIn {
			d, err := sluice.New(s, limit, "chaos").Peek(context.Background(), "k", 0)
			if err == nil && d.Source == sluice.Shared {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return time.Since(start)
}

// division measures how long breakers disagree, and by how much.
type division struct {
	mu      sync.Mutex
	away    [instances]bool
	since   time.Time
	divided float64 // s, times the share of the instances that are kept from Redis
}

func (v *division) change(instance int, to failover.State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count()
	v.away[instance] = to != failover.Closed
}

func (v *division) end() float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count()
	return v.divided
}

func (v *division) count() {
	n := 0
	for _, away := range v.away {
		if away {
			n++
		}
	}
	now := time.Now()
	if n < instances { // all of them together have the rate once
		v.divided += now.Sub(v.since).Seconds() * float64(n) / instances
	}
	v.since = now
}

// tally is what the callers saw.
type tally struct {
	mu       sync.Mutex
	admitted int64
	from     [4]int64
	took     []time.Duration
	errs     []error
}

func (y *tally) add(d sluice.Decision, err error, took time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.admitted += d.Charged
	y.took = append(y.took, took)
	if err != nil {
		y.errs = append(y.errs, err)
	} else {
		y.from[d.Source]++
	}
}

func (y *tally) percentile(p int) time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	slices.Sort(y.took)
	return y.took[(len(y.took)-1)*p/100].Round(10 * time.Microsecond)
}

// calls is how often a server has executed a command.
func calls(t *testing.T, c *goredis.Client, command string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text, err := c.Info(ctx, "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if _, rest, ok := cut(text, "cmdstat_"+command+":calls="); ok {
		if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
