package failover_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

var errAway = fmt.Errorf("%w: test: away", sluice.ErrUnavailable)

// away is a store behind a switch, in the place of a Redis.
type away struct {
	store sluice.Store
	off   atomic.Bool
	hang  time.Duration // how long a call takes to fail
	calls atomic.Int64
}

func (s *away) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	s.calls.Add(1)
	if s.off.Load() {
		return sluice.Decision{}, s.fail(ctx)
	}
	d, err := s.store.Take(ctx, a)
	d.Source = sluice.Shared
	return d, err
}

func (s *away) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	s.calls.Add(1)
	if s.off.Load() {
		return sluice.Verdict{}, s.fail(ctx)
	}
	v, err := sluice.TakeAll(ctx, s.store, asks)
	v.Source = sluice.Shared
	return v, err
}

func (s *away) fail(ctx context.Context) error {
	if s.hang > 0 {
		t := time.NewTimer(s.hang)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded)
		}
	}
	return errAway
}

// fleet is a simulated fleet on one shared store, in virtual time.
type fleet struct {
	shared *away
	guards []sluice.Store
	close  func()
}

func newFleet(n int, carry, share bool) *fleet {
	f := &fleet{shared: &away{store: local.New(local.Options{Clock: time.Now})}}
	var closers []func() error
	for range n {
		o := failover.Options{}
		if share {
			o.Instances = n
		}
		b := failover.New(o)
		var fallback sluice.Store = local.NewBuckets(local.BucketsOptions{Clock: time.Now, Share: b.Share})
		if carry {
			fallback = b.Guard(f.shared, fallback)
		} else {
			fallback = b.Guard(f.shared, assumed{fallback})
		}
		f.guards = append(f.guards, fallback)
		closers = append(closers, b.Close)
	}
	f.close = func() {
		for _, c := range closers {
			_ = c()
		}
	}
	return f
}

// assumed hides what a fallback has left, so that nothing is carried.
type assumed struct{ sluice.Store }

func (s assumed) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	d, err := s.Store.Take(ctx, a)
	d.Source = sluice.Assumed
	return d, err
}

// outage is the schedule of the issue: away from second 5 to 35, then flapping every 2 s for 20 s.
func outage(at time.Duration) bool {
	switch s := at.Seconds(); {
	case s < 5:
		return false
	case s < 35:
		return true
	case s < 55:
		return int(s-35)/2%2 == 1
	}
	return false
}

// arrival is one request: when, at which instance, of how many units.
type arrival struct {
	at       time.Duration
	instance int
	n        int64
}

const simulated = 60 * time.Second

// run plays arrivals, which are in order, and returns what was admitted in each second, and all that was asked for.
func (f *fleet) run(t *testing.T, arrivals []arrival) (perSecond []int64, admitted, asked int64) {
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 100, Period: time.Second, Burst: 100}))
	perSecond = make([]int64, simulated/time.Second)
	start := time.Now()
	for _, a := range arrivals {
		time.Sleep(a.at - time.Since(start))
		f.shared.off.Store(outage(a.at))
		d, err := f.guards[a.instance].Take(t.Context(), sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "api", Subject: "a"}, N: a.n})
		if err != nil {
			t.Fatalf("at %v: %v", a.at, err)
		}
		asked += a.n
		admitted += d.Charged
		perSecond[a.at/time.Second] += d.Charged
	}
	return perSecond, admitted, asked
}

// steady is rate requests a second, spread over the instances by weight, each instance's evenly in time.
func steady(rate float64, weights ...float64) []arrival {
	var all []arrival
	total := 0.0
	for _, w := range weights {
		total += w
	}
	due := make([]time.Duration, len(weights))
	for i := range due {
		due[i] = time.Duration(i) * 2500 * time.Microsecond
	}
	for {
		first := 0
		for i := range due {
			if due[i] < due[first] {
				first = i
			}
		}
		if due[first] >= simulated {
			return all
		}
		all = append(all, arrival{due[first], first, 1})
		due[first] += time.Duration(float64(time.Second) * total / (rate * weights[first]))
	}
}

// random is rate units a second, n requests at a time, at random times and instances.
func random(rate float64, n int, weights ...float64) []arrival {
	r := rand.New(rand.NewPCG(1, 2))
	var all []arrival
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64() / rate * float64(n) * float64(time.Second))
		if at >= simulated {
			return all
		}
		x, i := r.Float64(), 0
		for x >= weights[i] && i < len(weights)-1 {
			x -= weights[i]
			i++
		}
		for range n {
			all = append(all, arrival{at, i, 1})
		}
	}
}

// bursts is n requests at once on each instance every period, the instances a part of the period apart.
func bursts(n int, period time.Duration, instances int) []arrival {
	var all []arrival
	for at := time.Duration(0); at < simulated; at += period / time.Duration(instances) {
		i := int(at/(period/time.Duration(instances))) % instances
		for range n {
			all = append(all, arrival{at, i, 1})
		}
	}
	return all
}

// During a hang, callers in parallel: none waits longer than the store's timeout, and the bound holds as it does for a
// store that refuses.
func TestBoundThroughHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(4, true, true)
		defer f.close()
		f.shared.hang = 50 * time.Millisecond
		st := bucket(100, time.Second)
		start := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		admitted, slowest := int64(0), time.Duration(0)
		for _, a := range random(400, 1, .25, .25, .25, .25) {
			time.Sleep(a.at - time.Since(start))
			f.shared.off.Store(outage(a.at))
			wg.Go(func() {
				asked := time.Now()
				d, err := f.guards[a.instance].Take(t.Context(), ask(st, "a", 1))
				mu.Lock()
				defer mu.Unlock()
				admitted += d.Charged
				slowest = max(slowest, time.Since(asked))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ratio := float64(admitted) / (100 + 100*simulated.Seconds())
		t.Logf("%.3f of the bound; slowest decision %v", ratio, slowest)
		if ratio < 0.95 || ratio > 1.03 || slowest > f.shared.hang {
			t.Errorf("%.3f of the bound, slowest decision %v; want 0.95 to 1.03, at most %v", ratio, slowest, f.shared.hang)
		}
	})
}

// The bound of the issue, in virtual time: 4 instances, 100/s with a burst of 100, and a shared store that goes away
// for 30 s and then flaps for 20.
func TestBoundThroughOutage(t *testing.T) {
	even := []float64{.25, .25, .25, .25}
	skew := []float64{.7, .1, .1, .1}
	for _, c := range []struct {
		name         string
		carry, share bool
		arrivals     []arrival
		least, most  float64 // admitted / (100 + 100·t)
		worst        int64   // most admitted in one second after the first; 0: not said
		served       float64 // admitted / asked, at least
	}{
		{"even, share and carry", true, true, steady(400, even...), 0.95, 1.03, 130, 0},
		{"even at random, share and carry", true, true, random(400, 1, even...), 0.95, 1.03, 130, 0},
		{"skewed, share and carry", true, true, steady(400, skew...), 0, 1.03, 0, 0},
		{"skewed at random, share and carry", true, true, random(400, 1, skew...), 0, 1.03, 0, 0},
		{"bursts at 0.9, share and carry", true, true, bursts(9, 400*time.Millisecond, 4), 0, 1.03, 130, 0.88},
		{"larger bursts at 0.9, share and carry", true, true, bursts(22, 978*time.Millisecond, 4), 0, 1.03, 130, 0.88},
		{"bursts of 9 at 0.9 at random, share and carry", true, true, random(90, 9, even...), 0, 1.03, 0, 0.88},
		{"skewed bursts of 10 at random, share and carry", true, true, random(400, 10, skew...), 0, 1.03, 0, 0},
		{"even, share alone", false, true, steady(400, even...), 1.03, 2, 0, 0},
		{"even, neither", false, false, steady(400, even...), 2, 4, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(4, c.carry, c.share)
				defer f.close()
				perSecond, admitted, asked := f.run(t, c.arrivals)
				ratio := float64(admitted) / (100 + 100*simulated.Seconds())
				served := float64(admitted) / float64(asked)
				worst, at := int64(0), 0
				for s, n := range perSecond[1:] {
					if n > worst {
						worst, at = n, s+1
					}
				}
				t.Logf("admitted %d of %d asked for: %.3f of the bound, %.3f served; worst second %d (in second %d); %d calls to the shared store",
					admitted, asked, ratio, served, worst, at, f.shared.calls.Load())
				if ratio < c.least || ratio > c.most {
					t.Errorf("admitted %.3f of the bound, want %.2f to %.2f", ratio, c.least, c.most)
				}
				if c.worst > 0 && worst > c.worst {
					t.Errorf("%d admitted in second %d, want at most %d\n%v", worst, at, c.worst, perSecond)
				}
				if served < c.served {
					t.Errorf("%.3f served, want at least %.2f", served, c.served)
				}
			})
		})
	}
}
