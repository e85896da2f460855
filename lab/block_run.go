package lab

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// run has one client decide and others ask, for p.Duration.
func (p *BlockParams) run(ctx context.Context, s *server, v blocker) (Row, error) {
	one := s.client(wire{pool: 1, timeout: blockTime})
	defer one.Close()
	decide, key, err := v.make(ctx, one, p.Entries)
	if err != nil {
		return Row{}, err
	}
	others := s.client(wire{pool: p.Others, timeout: blockTime})
	defer others.Close()
	if err := warm(ctx, others); err != nil {
		return Row{}, err
	}
	bytes := p.bytes(ctx, s, one, key)
	before := statsOf(ctx, s, one, "evalsha")

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if v.every == 0 {
		v.every = p.Every
	}
	end := time.Now().Add(p.Duration)
	var running sync.WaitGroup
	var own latencies
	if decide != nil {
		running.Go(func() {
			if own, err = v.decide(ctx, end, decide); err != nil {
				cancel(err)
			}
		})
	}
	waits := make([]latencies, p.Others)
	for i := range waits {
		running.Go(func() {
			var err error
			if waits[i], err = readOnTime(ctx, end, others); err != nil {
				cancel(err)
			}
		})
	}
	if err := await(ctx, &running, s, func() {
		tell(p.Progress, "%s: %v of %v", spaced(v.name), (p.Duration - time.Until(end)).Round(time.Second), p.Duration)
	}); err != nil {
		return Row{}, err
	}
	var all latencies
	for _, w := range waits {
		all = append(all, w...)
	}
	slow := 0
	for _, w := range all {
		if w > slowerThan {
			slow++
		}
	}
	return Row{v.name, Fields{
		{"decisions", len(own)},
		{"server_us_per_decision", statsOf(ctx, s, one, "evalsha").since(before)},
		{"key_bytes", bytes},
		{"others_requests", len(all)},
		{"others_p50_ms", all.quantile(0.50)},
		{"others_p99_ms", all.quantile(0.99)},
		{"others_max_ms", all.quantile(1)},
		{"others_over_5ms_percent", 100 * float64(slow) / float64(max(1, len(all)))},
	}}, nil
}

// decide decides each v.every until end or ctx's end, at most v.most times if that is not 0.
func (v *blocker) decide(ctx context.Context, end time.Time, decide func(context.Context) error) (took latencies, err error) {
	for due := time.Now().Add(v.every / 2); due.Before(end) && (v.most == 0 || len(took) < v.most); due = due.Add(v.every) {
		if !until(ctx, due) {
			return took, context.Cause(ctx)
		}
		asked := time.Now()
		if err := decide(ctx); err != nil {
			return took, err
		}
		took = append(took, time.Since(asked))
	}
	return took, nil
}

// readOnTime reads a key each otherTime until end, and returns how long that took from when it was due.
func readOnTime(ctx context.Context, end time.Time, c *goredis.Client) (waits latencies, err error) {
	for due := time.Now(); due.Before(end); due = due.Add(otherTime) {
		if !until(ctx, due) {
			return waits, context.Cause(ctx)
		}
		if err := c.Get(ctx, "block:other").Err(); err != nil && err != goredis.Nil {
			return waits, fmt.Errorf("lab: block: %w", err)
		}
		waits = append(waits, time.Since(due))
	}
	return waits, nil
}

// bytes is what a key takes in the server; NaN where there is none, or the server does not say.
func (p *BlockParams) bytes(ctx context.Context, s *server, c *goredis.Client, key string) float64 {
	if s.proc == nil || key == "" {
		return math.NaN()
	}
	n, err := c.MemoryUsage(ctx, key, 0).Result() // all of its entries
	if err != nil {
		return math.NaN()
	}
	return float64(n)
}

// commandStats are how often a command was called on a server, and for how long in all.
type commandStats struct{ calls, us float64 }

// statsOf reads a server's count of a command; NaN where it has none.
func statsOf(ctx context.Context, s *server, c *goredis.Client, command string) (t commandStats) {
	unknown := commandStats{math.NaN(), math.NaN()}
	if s.proc == nil {
		return unknown
	}
	info, err := c.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return unknown
	}
	for part := range strings.SplitSeq(info["Commandstats"]["cmdstat_"+command], ",") {
		name, value, _ := strings.Cut(part, "=")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "calls":
			t.calls = n
		case "usec":
			t.us = n
		}
	}
	return t
}

// since is the µs a call took on average since before; NaN where there was none.
func (t commandStats) since(before commandStats) float64 {
	return (t.us - before.us) / (t.calls - before.calls)
}
