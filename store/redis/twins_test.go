package redis

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
)

// algorithms are the four, by the names of their scripts.
var algorithms = map[string]algorithmtest.New{
	"token_bucket":   algorithmtest.Of(tokenbucket.New),
	"leaky_bucket":   algorithmtest.Of(leaky.New),
	"fixed_window":   algorithmtest.Of(fixedwindow.New),
	"sliding_window": algorithmtest.Of(slidingwindow.New),
}

// TestTwins compares Go and Lua in a real Redis, step by step over random histories with edited limits, refunds,
// clocks that step back and forged words: what was charged, the words that are kept, and the TTL.
func TestTwins(t *testing.T) {
	steps := 30_000
	if testing.Short() {
		steps = 5_000
	}
	client := redistest.Shared(t).Client(func(o *goredis.Options) { o.ReadTimeout = time.Minute })
	for name, build := range algorithms {
		t.Run(name, func(t *testing.T) {
			replay(t, client, "twins:"+name, algorithmtest.Histories(1, steps, build))
			t.Logf("%d steps on a real Redis: none differs", steps)
		})
	}
}

// step is what Go expects of one step in Redis.
type step struct {
	before, after algorithm.State
	charged       int64
	ttl           int64 // ms; 0: not set by this step
	reply         *goredis.Cmd
	words         *goredis.SliceCmd
	pttl          *goredis.Cmd
}

func replay(t *testing.T, client *goredis.Client, key string, history []algorithmtest.Step) {
	ctx := context.Background()
	var s scripts
	var state algorithm.State
	for len(history) > 0 {
		batch := history[:min(len(history), 500)]
		history = history[len(batch):]
		expected := make([]step, len(batch))
		pipe := client.Pipeline()
		for i, h := range batch {
			script, params := h.Strategy.Lua()
			if h.Set != nil {
				state = *h.Set
				pipe.Del(ctx, key)
				if state != (algorithm.State{}) {
					pipe.HSet(ctx, key, script.Words[0], state[0], script.Words[1], state[1], script.Words[2], state[2])
				}
			}
			e := &expected[i]
			e.before = state
			e.reply, state, e.charged, e.ttl = send(ctx, pipe, &s, key, h, script, params, state)
			e.after = state
			e.words = pipe.HMGet(ctx, key, script.Words...)
			e.pttl = pipe.Do(ctx, "pttl", key)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for i, e := range expected {
			if fault := e.fault(); fault != "" {
				t.Fatalf("%s\nstep %+v\nlimit %v, state before %v", fault, batch[i], batch[i].Strategy.Limit(), e.before)
			}
		}
	}
}

// send queues one step and returns what Go makes of it.
func send(ctx context.Context, pipe goredis.Pipeliner, s *scripts, key string, h algorithmtest.Step, script *algorithm.Script, params []int64, state algorithm.State) (reply *goredis.Cmd, after algorithm.State, charged, ttl int64) {
	n := min(max(h.N, -algorithm.Bound), algorithm.Bound)
	if h.Adjust {
		args := []any{"eval", s.any([]*algorithm.Script{script}).source, 1, key, h.Now, 1, 3, n, min(max(h.At, -algorithm.Bound), algorithm.Bound), len(params)}
		for _, p := range params {
			args = append(args, p)
		}
		after = h.Strategy.Adjust(state, h.Now, h.N, h.At)
		_, left := h.Strategy.Take(after, h.Now, 0)
		return pipe.Do(ctx, args...), after, 0, milliseconds(left.ResetAfter)
	}
	args := []any{"eval", s.charge(script).source, 1, key, h.Now, n}
	for _, p := range params {
		args = append(args, p)
	}
	after, d := h.Strategy.Take(state, h.Now, h.N)
	if d.Charged > 0 {
		ttl = milliseconds(d.ResetAfter)
	}
	return pipe.Do(ctx, args...), after, d.Charged, ttl
}

// milliseconds is the TTL under a caller's clock.
func milliseconds(reset time.Duration) int64 {
	return int64((reset+time.Millisecond-1)/time.Millisecond) + 60_000
}

func (e *step) fault() string {
	r := newReader(e.reply.Val())
	r.now()
	if len(r.items) > 4 { // the general script's reply says which ask refused
		r.next()
	}
	charged := r.whole("charged")
	if r.err != nil || charged != e.charged {
		return fmt.Sprintf("Redis charged %d (%v), Go %d", charged, r.err, e.charged)
	}
	var kept algorithm.State
	for i, w := range e.words.Val() {
		if text, ok := w.(string); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Sprintf("Redis keeps %q", text)
			}
			kept[i] = n
		}
	}
	if kept != e.after {
		return fmt.Sprintf("Redis keeps %v, Go %v", kept, e.after)
	}
	pttl, _ := e.pttl.Int64()
	if e.ttl > 0 && e.after != (algorithm.State{}) && (pttl > e.ttl || pttl < e.ttl-30_000) {
		return fmt.Sprintf("Redis forgets in %d ms, Go in %d", pttl, e.ttl)
	}
	return ""
}
