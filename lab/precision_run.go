package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/store/redis"
)

// polite is when a client asks, in µs, that spends the burst at once and then comes exactly when the next token is there.
func (p *PrecisionParams) polite() []int64 {
	times := make([]int64, p.Requests)
	gap := p.Limit.Period.Microseconds() / p.Limit.Count
	for i := range times {
		times[i] = clockStart + 123_457 + max(0, int64(i)-p.Limit.Burst+1)*gap
	}
	return times
}

// eager is when a client asks, in µs, that comes at random times.
func (p *PrecisionParams) eager() []int64 {
	random := rand.New(rand.NewPCG(p.Seed, 2))
	gap := float64(p.Limit.Period.Microseconds()) / float64(p.Limit.Count) / p.Demand
	times, at := make([]int64, p.Requests), 0.0
	for i := range times {
		times[i] = clockStart + int64(at)
		at += random.ExpFloat64() * gap
	}
	return times
}

// exact is what the strategy itself admits.
func exact(st sluice.Strategy, times []int64) (admitted int64) {
	var s algorithm.State
	for _, now := range times {
		next, d := st.Take(s, now, 1)
		s = next
		admitted += d.Charged
	}
	return admitted
}

// kept is what came of a way to keep numbers.
type kept struct {
	admitted   int64
	clockError float64 // µs: the most that a kept time differs from the one that was to be kept
	time       string  // that was kept last, as it is
}

// run asks at the given times, in one way, on a key of its own, and tells now and then how often it has.
func (k *keeper) run(ctx context.Context, c *goredis.Client, subject string, times []int64, tell func(done int)) (kept, error) {
	if k.script == "" {
		return k.integers(ctx, c, subject, times, tell)
	}
	return k.naive(ctx, c, "precision:"+k.name+":"+subject, times, tell)
}

// integers asks this module's store.
func (k *keeper) integers(ctx context.Context, c *goredis.Client, subject string, times []int64, tell func(done int)) (r kept, err error) {
	var now int64
	store := redis.New(c, redis.Options{Timeout: startTime, NoCoalescing: true, NoKnownDenials: true,
		Clock: func() time.Time { return time.UnixMicro(now) }})
	ask := sluice.Ask{Strategy: k.strategy, Key: sluice.Key{Rule: "precision", Subject: subject}, N: 1}
	var told pace
	for i := range times {
		if told.due() {
			tell(i)
		}
		now = times[i]
		d, err := store.Take(ctx, ask)
		if err != nil {
			return r, fmt.Errorf("lab: precision: %w", err)
		}
		r.admitted += d.Charged
		r.clockError = max(r.clockError, math.Abs(float64(d.At-now)))
	}
	script, _ := k.strategy.Lua()
	r.time, err = c.HGet(ctx, "sluice:{"+subject+"}:precision:"+script.Name, script.Words[1]).Result()
	if err != nil {
		return r, fmt.Errorf("lab: precision: %w", err)
	}
	return r, nil
}

// naive runs the script, many requests at once.
func (k *keeper) naive(ctx context.Context, c *goredis.Client, key string, times []int64, tell func(done int)) (r kept, err error) {
	sha, err := c.ScriptLoad(ctx, k.script).Result()
	if err != nil {
		return r, fmt.Errorf("lab: precision: %s: %w", k.name, err)
	}
	l := k.strategy.Limit()
	rate := strconv.FormatFloat(float64(l.Count)/l.Period.Seconds()/float64(k.second), 'g', 17, 64)
	var told pace
	for from := 0; from < len(times); from += filling {
		if told.due() {
			tell(from)
		}
		some := times[from:min(from+filling, len(times))]
		replies := make([]*goredis.Cmd, len(some))
		_, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i, t := range some {
				replies[i] = p.EvalSha(ctx, sha, []string{key}, k.time(t), rate, l.Burst)
			}
			return nil
		})
		if err != nil {
			return r, fmt.Errorf("lab: precision: %s: %w", k.name, err)
		}
		for i, reply := range replies {
			if err := r.add(reply, k, some[i]); err != nil {
				return r, fmt.Errorf("lab: precision: %s: %w", k.name, err)
			}
		}
	}
	return r, nil
}

// time is a time as the script is given it, exactly.
func (k *keeper) time(µs int64) string {
	if k.second == 1 {
		return fmt.Sprintf("%d.%06d", µs/1e6, µs%1e6)
	}
	return strconv.FormatInt(µs, 10)
}

// add counts a reply to a request made at a time in µs.
func (r *kept) add(reply *goredis.Cmd, k *keeper, at int64) error {
	all, err := reply.Slice()
	if err != nil {
		return err
	}
	if len(all) != 2 {
		return fmt.Errorf("%d values in a reply, want 2", len(all))
	}
	if n, _ := all[0].(int64); n == 1 {
		r.admitted++
	}
	r.time, _ = all[1].(string)
	read, err := strconv.ParseFloat(r.time, 64)
	if err != nil {
		return err
	}
	µs := read * 1e6 / float64(k.second)
	r.clockError = max(r.clockError, math.Round(math.Abs(µs-float64(at))))
	return nil
}
