package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

// variants are what Outage compares.
func variants() []OutageVariant {
	return []OutageVariant{
		{Name: "local, share and carry", Mode: "local", Share: true, Carry: true},
		{Name: "local, share alone", Mode: "local", Share: true},
		{Name: "local, neither", Mode: "local"},
		{Name: "allow", Mode: "allow"},
		{Name: "deny", Mode: "deny"},
	}
}

// fleet is the instances of one variant, which share one key and no other variant's.
type fleet struct {
	variant   OutageVariant
	ask       sluice.Ask
	instances []*instance
	tally     *tally
}

// instance is what one process of a fleet would hold.
type instance struct {
	redis   *redis.Store
	breaker *failover.Breaker
	guard   sluice.Store
}

func newFleet(v OutageVariant, p OutageParams, st sluice.Strategy, addr string) (*fleet, error) {
	f := &fleet{
		variant: v,
		ask:     sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "outage", Subject: v.Name}, N: 1},
		tally:   newTally(p.Duration),
	}
	for range p.Instances {
		primary, err := redis.Open("redis://"+addr, redis.Options{Timeout: p.Timeout})
		if err != nil {
			f.close()
			return nil, fmt.Errorf("lab: %w", err)
		}
		in := &instance{redis: primary, breaker: failover.New(failover.Options{Instances: p.Instances})}
		in.guard = in.decider(v)
		f.instances = append(f.instances, in)
	}
	return f, nil
}

// decider is the store that the instance's callers ask.
func (in *instance) decider(v OutageVariant) sluice.Store {
	var fallback sluice.Store
	switch v.Mode {
	case "allow":
		fallback = failover.AllowAll{}
	case "deny":
		fallback = failover.DenyAll{}
	default:
		o := local.BucketsOptions{}
		if v.Share {
			o.Share = in.breaker.Share
		}
		fallback = local.NewBuckets(o)
	}
	if v.Mode == "local" && !v.Carry {
		return in.breaker.Guard(chargesOnly(in.redis), chargesOnly(fallback))
	}
	return in.breaker.Guard(in.redis, fallback)
}

// chargesOnly is s without what a guard carries: a guard carries levels by Peek and UpTo alone, which this answers as
// if nothing were to be charged.
func chargesOnly(s sluice.Store) sluice.Store {
	return sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		if a.Mode != sluice.Charge {
			return sluice.Decision{Allowed: true, Limit: a.Strategy.Limit().Burst}, ctx.Err()
		}
		return s.Take(ctx, a)
	})
}

func (f *fleet) close() {
	for _, in := range f.instances {
		_ = in.breaker.Close()
		_ = in.redis.Close()
	}
}

// connectTime is how long an instance tries to reach Redis before the run.
const connectTime = 5 * time.Second

// connect has each instance ask once, so that the run begins with a connection and with a script that Redis knows. The
// ask charges nothing.
func (f *fleet) connect(ctx context.Context) error {
	a := f.ask
	a.N = 0
	deadline := time.Now().Add(connectTime)
	for _, in := range f.instances {
		for {
			_, err := in.redis.Take(ctx, a)
			if err == nil {
				break
			}
			if ctx.Err() != nil || time.Now().After(deadline) {
				return fmt.Errorf("lab: before the run: %w", err)
			}
		}
	}
	return nil
}

// drive sends each instance its part of the demand until the run or ctx ends, and waits for the answers.
func (f *fleet) drive(ctx context.Context, start time.Time, p *OutageParams) {
	sum := 0.0
	for _, w := range p.Skew {
		sum += w
	}
	var running sync.WaitGroup
	for i, in := range f.instances {
		part := 1 / float64(p.Instances)
		if p.Skew != nil {
			part = p.Skew[i] / sum
		}
		if part == 0 {
			continue
		}
		arrivals := rand.New(rand.NewPCG(p.Seed, uint64(i)))
		gap := float64(p.Bunch) / (p.rate() * p.Demand * part) // seconds, on average
		running.Go(func() {
			var asks sync.WaitGroup
			defer asks.Wait()
			for at := arrivals.ExpFloat64() * gap; at < p.Duration.Seconds(); at += arrivals.ExpFloat64() * gap {
				if !until(ctx, start.Add(time.Duration(at*float64(time.Second)))) {
					return
				}
				for range p.Bunch {
					asks.Go(func() { f.one(ctx, start, in.guard) })
				}
			}
		})
	}
	running.Wait()
}

// one asks once. What it is told counts at the time when it is told.
func (f *fleet) one(ctx context.Context, start time.Time, guard sluice.Store) {
	a := f.ask
	asked := time.Now()
	d, err := guard.Take(ctx, a)
	told := time.Now()
	f.tally.add(told.Sub(start), told.Sub(asked), d, err)
}
