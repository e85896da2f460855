package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// expiry is a way to give a key its time to live.
type expiry struct {
	name string
	of   func(resetAfter time.Duration) time.Duration // at each write
}

// forever is the expiry of a key that has none.
const forever = time.Duration(math.MaxInt64)

func (p *TTLParams) expiries() []expiry {
	fixed := func(d time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return d }
	}
	return []expiry{
		{"fixed_short", fixed(p.Short)},
		{"fixed_long", fixed(p.Long)},
		{"time_to_full", toMillisecond},
	}
}

// toMillisecond rounds up, as the store does for PEXPIRE.
func toMillisecond(d time.Duration) time.Duration {
	return max(time.Millisecond, (d+time.Millisecond-1)/time.Millisecond*time.Millisecond)
}

// virtualKey is a key whose time is virtual: since the start of the run.
type virtualKey struct {
	strategy sluice.Strategy
	expiry   expiry
	state    algorithm.State
	expires  time.Duration // 0: there is no key
}

// take asks for one unit. A denial writes nothing.
func (k *virtualKey) take(at time.Duration) (allowed, refilled bool) {
	now := clockStart + at.Microseconds()
	if k.expires > 0 && at >= k.expires {
		// As good as none if the state has reset: a unit more passes than would have only where it has not.
		_, would := k.strategy.Take(k.state, now, 0)
		refilled = would.ResetAfter > 0
		k.state, k.expires = algorithm.State{}, 0
	}
	next, d := k.strategy.Take(k.state, now, 1)
	if d.Allowed {
		k.state, k.expires = next, forever
		if ttl := k.expiry.of(d.ResetAfter); ttl < forever-at {
			k.expires = at + ttl
		}
	}
	return d.Allowed, refilled
}

// spend has one client ask for a burst, pause, and so on.
func (p *TTLParams) spend(e expiry, st sluice.Strategy) (asked, admitted, refilled int64) {
	key := virtualKey{strategy: st, expiry: e}
	for at := time.Duration(0); at < p.Duration; at += p.Pause {
		for range p.Limit.Burst {
			asked++
			allowed, early := key.take(at)
			if allowed {
				admitted++
			}
			if early {
				refilled++
			}
		}
	}
	return asked, admitted, refilled
}

// visits are when visitors come.
func (p *TTLParams) visits() []time.Duration {
	random := rand.New(rand.NewPCG(p.Seed, 1))
	visits := make([]time.Duration, p.Visitors)
	for i := range visits {
		visits[i] = time.Duration(random.Int64N(int64(p.Duration)))
	}
	return visits
}

// keyCount is how many keys there are.
type keyCount struct {
	mean      float64
	most, end int
}

// keys counts the keys of visitors.
func (p *TTLParams) keys(ctx context.Context, e expiry, st sluice.Strategy, visits []time.Duration) (keyCount, error) {
	var begins, ends []time.Duration // of the times in which a key is there
	for i, visit := range visits {
		if i%1000 == 0 && ctx.Err() != nil {
			return keyCount{}, context.Cause(ctx)
		}
		key := virtualKey{strategy: st, expiry: e}
		for r := range p.Requests {
			at := visit + time.Duration(r)*time.Second
			if at >= p.Duration {
				break
			}
			if was := key.expires; was == 0 || at >= was {
				if was > 0 {
					ends = append(ends, was)
				}
				begins = append(begins, at)
			}
			key.take(at)
		}
		ends = append(ends, key.expires)
	}
	slices.Sort(begins)
	slices.Sort(ends)
	var c keyCount
	var held float64 // key-seconds
	n, ended := 0, 0
	for _, at := range begins {
		for ended < len(ends) && ends[ended] <= at {
			ended++
			n--
		}
		n++
		c.most = max(c.most, n)
	}
	for i := range begins {
		held += (min(ends[i], p.Duration) - begins[i]).Seconds()
		if ends[i] > p.Duration {
			c.end++
		}
	}
	c.mean = held / p.Duration.Seconds()
	return c, nil
}

// keyBytes is what a key of the store takes in a server; NaN where that does not tell.
func keyBytes(ctx context.Context, s *server, st sluice.Strategy) (float64, error) {
	if s.proc == nil {
		return math.NaN(), nil
	}
	c := s.client(wire{pool: 1, timeout: connectTime})
	defer c.Close()
	a := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "login", Subject: "203.0.113.7"}, N: 1}
	if _, err := engine(c, connectTime).Take(ctx, a); err != nil {
		return 0, fmt.Errorf("lab: ttl: %w", err)
	}
	script, _ := st.Lua()
	n, err := c.MemoryUsage(ctx, "sluice:{203.0.113.7}:login:"+script.Name).Result()
	if err != nil {
		return 0, fmt.Errorf("lab: ttl: %w", err)
	}
	return float64(n), nil
}
