package lab

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// timing is a way to know the time.
type timing struct {
	name   string
	server bool // the server's clock decides; else each client's
	naive  bool
	error  func(p *ClockParams, client int, at time.Duration) time.Duration // of the clock that decides
}

func timings() []timing {
	return []timing{
		{name: "server", server: true, error: right},
		{name: "server_steps", server: true, error: (*ClockParams).steps},
		{name: "client_right", error: right},
		{name: "client_skewed", error: (*ClockParams).skewed},
		{name: "client_one_steps", error: (*ClockParams).oneSteps},
		{name: "client_ahead_leaves", error: (*ClockParams).aheadLeaves},
		{name: "naive_right", naive: true, error: right},
		{name: "naive_skewed", naive: true, error: (*ClockParams).skewed},
		{name: "naive_one_steps", naive: true, error: (*ClockParams).oneSteps},
	}
}

func right(*ClockParams, int, time.Duration) time.Duration { return 0 }

// steps is a clock that is right for StepFor, then Skew ahead for StepFor, and so on.
func (p *ClockParams) steps(_ int, at time.Duration) time.Duration {
	return p.Skew * (at / p.StepFor % 2)
}

// skewed is clocks whose errors are constant, and spread evenly from -Skew to Skew.
func (p *ClockParams) skewed(client int, _ time.Duration) time.Duration {
	return -p.Skew + 2*p.Skew*time.Duration(client)/time.Duration(p.Clients-1)
}

// oneSteps is clocks that are right, but for the first, which steps.
func (p *ClockParams) oneSteps(client int, at time.Duration) time.Duration {
	if client > 0 {
		return 0
	}
	return p.steps(client, at)
}

// aheadLeaves is clocks that are right, but for the first, which is Skew ahead and set right after StepFor.
func (p *ClockParams) aheadLeaves(client int, at time.Duration) time.Duration {
	if client > 0 || at >= p.StepFor {
		return 0
	}
	return p.Skew
}

// clockAsk is a request: when, since the start of the run, and whose.
type clockAsk struct {
	at     time.Duration
	client int
}

// arrivals are random, and the same for each variant.
func (p *ClockParams) arrivals() (asks []clockAsk) {
	random := rand.New(rand.NewPCG(p.Seed, 0))
	gap := float64(time.Second) / (limitRate(p.Limit) * p.Demand)
	for at := random.ExpFloat64() * gap; at < float64(p.Duration); at += random.ExpFloat64() * gap {
		asks = append(asks, clockAsk{time.Duration(at), random.IntN(p.Clients)})
	}
	return asks
}

// clockStart is when a run begins, in µs since the Unix epoch.
const clockStart = 1_800_000_000_000_000

// run lets the clients ask.
func (p *ClockParams) run(ctx context.Context, v timing, st sluice.Strategy, asks []clockAsk) (t clockTally, err error) {
	shared := keptState{strategy: st, server: v.server}
	t.each = make([]float64, p.Clients)
	naive := naiveBucket{rate: limitRate(p.Limit), most: float64(p.Limit.Burst)}
	for i, a := range asks {
		if i%1000 == 0 && ctx.Err() != nil {
			return t, context.Cause(ctx)
		}
		truth := clockStart + a.at.Microseconds()
		now := truth + v.error(p, a.client, a.at).Microseconds()
		var allowed bool
		if v.naive {
			allowed = naive.take(float64(now) / 1e6)
		} else {
			server := truth
			if v.server {
				server = now
			}
			allowed = shared.take(server, now)
		}
		if allowed {
			t.admitted++
			t.times = append(t.times, a.at)
			t.each[a.client]++
		}
	}
	return t, nil
}

// keptState is one key of the store: a state, and when it expires.
type keptState struct {
	strategy sluice.Strategy
	server   bool // server and now are one clock
	state    algorithm.State
	expires  int64 // µs, by the server's clock
}

// take decides as the store's script does: at now, on a key that expires by the server's clock.
func (k *keptState) take(server, now int64) bool {
	if server >= k.expires {
		k.state = algorithm.State{}
	}
	next, d := k.strategy.Take(k.state, now, 1)
	if !d.Allowed {
		return false
	}
	k.state = next
	ttl := (d.ResetAfter.Microseconds() + 999) / 1000
	if !k.server {
		ttl += time.Minute.Milliseconds()
	}
	k.expires = server + 1000*max(1, ttl)
	return true
}

// naiveBucket is a token bucket as many scripts have it: floats, and the caller's time taken as it comes.
type naiveBucket struct {
	rate, most   float64 // tokens a second; tokens
	tokens, last float64 // last is 0 for a key never seen
}

func (b *naiveBucket) take(now float64) bool {
	if b.last == 0 {
		b.tokens, b.last = b.most, now
	}
	b.tokens = min(b.most, b.tokens+max(0, now-b.last)*b.rate)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// clockTally is what a variant admitted, and when.
type clockTally struct {
	admitted int64
	times    []time.Duration
	each     []float64 // by client
}

// fairness is Jain's index of what clients were admitted.
func (t *clockTally) fairness() float64 {
	sum, squares := 0.0, 0.0
	for _, n := range t.each {
		sum += n
		squares += n * n
	}
	return sum * sum / (float64(len(t.each)) * squares)
}

// mostIn is the largest number admitted in any window of a length, half open.
func (t *clockTally) mostIn(window time.Duration) (most int) {
	first := 0
	for i, at := range t.times {
		for t.times[first] <= at-window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// longestWithout is the longest time, from 0 to end, in which nothing was admitted.
func (t *clockTally) longestWithout(end time.Duration) (longest time.Duration) {
	last := time.Duration(0)
	for _, at := range append(t.times, end) {
		longest = max(longest, at-last)
		last = at
	}
	return longest
}
