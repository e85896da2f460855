package lab

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/redis"
)

var clockRows = []string{"server", "server_steps", "client_right", "client_skewed", "client_one_steps", "client_ahead_leaves",
	"naive_right", "naive_skewed", "naive_one_steps"}

// Whatever the clocks: the server's time admits what one budget allows; clients' times that, and what their clocks skip at
// most; and the naive script, where clocks differ, far more.
func TestClock(t *testing.T) {
	for seed := range uint64(20) {
		p := ClockParams{Seed: seed, Skew: time.Duration(seed+1) * 300 * time.Millisecond}
		r, err := Clock(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		formed(t, r, "clock", clockRows...)
		p = p.filled()
		admitted := func(name string) float64 { return r.Row(name).Number("admitted") }
		if n := admitted("server"); n > p.bound() || n < 0.95*p.bound() {
			t.Errorf("seed %d: server admits %v, want about %v and no more", seed, n, p.bound())
		}
		for _, name := range []string{"client_right", "naive_right"} {
			if admitted(name) != admitted("server") {
				t.Errorf("seed %d: %s admits %v, the server's clock %v: want the same", seed, name, admitted(name), admitted("server"))
			}
		}
		skipped := 2 * limitRate(p.Limit) * p.Skew.Seconds()
		for _, name := range []string{"client_skewed", "client_one_steps", "client_ahead_leaves", "server_steps"} {
			if n := admitted(name); n > p.bound()+skipped+1 {
				t.Errorf("seed %d: %s admits %v, want at most %v and %v", seed, name, n, p.bound(), skipped)
			}
		}
		if n := admitted("naive_skewed"); n < 1.3*p.bound() {
			t.Errorf("seed %d: naive_skewed admits %v, want far above %v", seed, n, p.bound())
		}
		if fair, unfair := r.Row("server").Number("fairness"), r.Row("client_skewed").Number("fairness"); fair < 0.9 || unfair > fair {
			t.Errorf("seed %d: fairness %v by the server's clock, %v by skewed ones", seed, fair, unfair)
		}
		// The clients' clocks are right, after one that was ahead: they wait until they are where it was.
		if n := r.Row("client_ahead_leaves").Number("longest_without_s"); n < p.Skew.Seconds()-0.5 {
			t.Errorf("seed %d: %v s without, want about %v", seed, n, p.Skew)
		}
	}
}

// The run in virtual time decides as the store does on a Redis, request by request, also where keys expire.
func TestClockAsTheStoreDoes(t *testing.T) {
	for _, limit := range []sluice.Limit{{Count: 10, Period: time.Second, Burst: 5}, {Count: 50, Period: time.Second, Burst: 1}} {
		p := ClockParams{Limit: limit, Demand: 1.2, Duration: 5 * time.Second, StepFor: time.Second, Skew: time.Second}.filled()
		bucket := sluice.Must(tokenbucket.New(p.Limit))
		asks := p.arrivals()
		for _, v := range timings() {
			if v.naive || v.name == "server_steps" { // miniredis expires keys by a clock that does not step
				continue
			}
			want, err := p.run(t.Context(), v, bucket, asks)
			if err != nil {
				t.Fatal(err)
			}
			if got := onMiniredis(t, &p, v, bucket, asks); !slices.Equal(got, want.times) {
				t.Errorf("%v, %s: the store admits %d, the run %d", limit, v.name, len(got), len(want.times))
			}
		}
	}
}

// onMiniredis is when the store admits.
func onMiniredis(t *testing.T, p *ClockParams, v timing, st sluice.Strategy, asks []clockAsk) (times []time.Duration) {
	m := miniredis.RunT(t)
	m.SetTime(time.UnixMicro(clockStart))
	m.ClockTTL(true)
	c := (&server{network: "tcp", addr: m.Addr()}).client(wire{pool: 1, timeout: connectTime})
	defer c.Close()
	var now time.Time
	o := redis.Options{Timeout: connectTime, NoCoalescing: true, NoKnownDenials: true}
	if !v.server {
		o.Clock = func() time.Time { return now }
	}
	store := redis.New(c, o)
	for _, a := range asks {
		truth := time.UnixMicro(clockStart + a.at.Microseconds())
		m.SetTime(truth)
		now = truth.Add(v.error(p, a.client, a.at))
		d, err := store.Take(t.Context(), sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "clock"}, N: 1})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			times = append(times, a.at)
		}
	}
	return times
}

func TestClockTally(t *testing.T) {
	s := func(seconds ...float64) (times []time.Duration) {
		for _, f := range seconds {
			times = append(times, time.Duration(f*1e9))
		}
		return times
	}
	for _, c := range []struct {
		times   []time.Duration
		most    int
		without time.Duration
	}{
		{nil, 0, 10e9},
		{s(0, 1, 2), 1, 8e9}, // half open: 0 and 1 are not in one second
		{s(0, 0.5, 0.9, 4, 9.5), 3, 5.5e9},
		{s(4, 4, 4), 3, 6e9},
	} {
		tally := clockTally{times: c.times}
		if most, without := tally.mostIn(time.Second), tally.longestWithout(10*time.Second); most != c.most || without != c.without {
			t.Errorf("%v: %d and %v, want %d and %v", c.times, most, without, c.most, c.without)
		}
	}
	for want, each := range map[float64][]float64{1: {3, 3, 3, 3}, 0.25: {8, 0, 0, 0}, 0.5: {4, 4, 0, 0}} {
		if got := (&clockTally{each: each}).fairness(); got != want {
			t.Errorf("%v: fairness %v, want %v", each, got, want)
		}
	}
}

func TestClockIsDeterministic(t *testing.T) {
	p := ClockParams{Seed: 7}.filled()
	if a, b := p.arrivals(), p.arrivals(); !slices.Equal(a, b) {
		t.Error("two runs differ")
	}
	q := p
	q.Seed = 8
	if slices.Equal(p.arrivals(), q.arrivals()) {
		t.Error("two seeds are one")
	}
}

func TestClockEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Clock(ctx, ClockParams{}); err != context.Canceled {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestClockCheck(t *testing.T) {
	refused(t, map[string]func(*ClockParams){
		"Clients 1":    func(p *ClockParams) { p.Clients = 1 },
		"Clients 65":   func(p *ClockParams) { p.Clients = 65 },
		"Count -1":     func(p *ClockParams) { p.Limit.Count = -1 },
		"Burst -1":     func(p *ClockParams) { p.Limit = sluice.Limit{Count: 1, Period: time.Second, Burst: -1} },
		"Demand -1":    func(p *ClockParams) { p.Demand = -1 },
		"Demand 1e+09": func(p *ClockParams) { p.Demand = 1e9 },
		"Skew":         func(p *ClockParams) { p.Skew = -1 },
		"StepFor":      func(p *ClockParams) { p.StepFor = 1 },
		"Duration":     func(p *ClockParams) { p.Duration = -1 },
	})
}
