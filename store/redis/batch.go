package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// batch turns requests that leave together into script calls: charges on one key and strategy become one load, as many
// takes, and one save; charges of one strategy on several keys share a call where one server has all keys; all calls
// share a pipeline. No request is passed over by a later one on its key.
type batch struct {
	calls []*scriptCall
	free  []*scriptCall
	open  []*scriptCall     // those that take more keys, the latest last
	last  map[string]*place // by key: the latest charges on it
}

// place is where the charges on one key are.
type place struct {
	call *scriptCall
	run  int
}

// scriptCall is one script call: a request of its own, or charges under one strategy.
type scriptCall struct {
	own    *request
	script *algorithm.Script
	params []int64
	runs   []run
	takes  int // callers
	work   int // callers who ask for another n than the one before them

	sent *composed
	cmd  once
}

// run is the charges on one key, in order.
type run struct {
	first, last *request
}

// How much one script call does, so that it stays well under 0.1 ms on the server: a key costs 4 µs, and a caller who asks
// for another n than the one before costs a take more, some 0.5 µs.
const (
	maxKeys  = 16
	maxTakes = 64 // of different n
	maxOpen  = 8  // strategies whose calls are looked through for a place
)

var batches = sync.Pool{New: func() any { return &batch{last: make(map[string]*place)} }}

// carry sends a batch and ends its requests.
func (s *Store) carry(b *batch, f *flight) {
	keys := maxKeys
	if !s.oneNode || s.sharded.Load() {
		keys = 1 // which are on one node is not known
	}
	b.plan(f.requests, keys)
	if len(b.calls) > 0 {
		ctx := departure{f.requests[0].ctx, time.Now().Add(s.timeout)}
		s.exchange(ctx, b.calls, (*scriptCall).byName)
		s.again(ctx, b)
		s.answer(b, f)
	}
	b.clear()
}

// departure is a batch's context: the values of the request that leads it, and the batch's own deadline. It is never
// cancelled, since others wait for the batch, too.
type departure struct {
	context.Context
	deadline time.Time
}

func (d departure) Deadline() (time.Time, bool) { return d.deadline, true }
func (departure) Done() <-chan struct{}         { return nil }
func (departure) Err() error                    { return nil }

// plan makes script calls of at most so many keys each.
func (b *batch) plan(requests []*request, keys int) {
	for _, r := range requests {
		switch {
		case r.gone():
		case r.own != nil:
			c := b.call()
			c.own = r
			// What comes later on its keys goes after it.
			for _, k := range r.own.keys {
				delete(b.last, k)
			}
			b.open = b.open[:0]
		case len(requests) == 1:
			b.start(r, keys)
		default:
			b.join(r, keys)
		}
	}
}

// join puts a charge beside those on its key, or else starts a run.
func (b *batch) join(r *request, keys int) {
	at := b.last[r.key]
	if at != nil {
		c := at.call
		run := &c.runs[at.run]
		if same := run.last.ask.N == r.ask.N; (same || c.work < maxTakes) && c.is(r) {
			run.last.next = r
			run.last = r
			c.takes++
			if !same {
				c.work++
			}
			return
		}
		b.open = b.open[:0]
	} else {
		at = new(place)
		b.last[r.key] = at
	}
	at.call, at.run = b.start(r, keys)
}

// start puts a charge into a call of its strategy that has room for one more key, or into a new one.
func (b *batch) start(r *request, keys int) (*scriptCall, int) {
	var c *scriptCall
	for i, other := range b.open {
		if other.is(r) {
			if len(other.runs) < keys && other.work < maxTakes {
				c = other
			} else {
				b.open = slices.Delete(b.open, i, i+1)
			}
			break
		}
	}
	if c == nil {
		c = b.call()
		c.script, c.params = r.script, r.params
		if keys > 1 {
			if len(b.open) == maxOpen {
				b.open = slices.Delete(b.open, 0, 1)
			}
			b.open = append(b.open, c)
		}
	}
	c.runs = append(c.runs, run{r, r})
	c.takes++
	c.work++
	return c, len(c.runs) - 1
}

// is tells whether the charges of a call are under the strategy of r.
func (c *scriptCall) is(r *request) bool {
	return c.own == nil && c.script == r.script && slices.Equal(c.params, r.params)
}

// call adds a call.
func (b *batch) call() *scriptCall {
	var c *scriptCall
	if n := len(b.free); n > 0 {
		c, b.free = b.free[n-1], b.free[:n-1]
	} else {
		c = new(scriptCall)
	}
	b.calls = append(b.calls, c)
	return c
}

func (b *batch) clear() {
	for _, c := range b.calls {
		clear(c.runs)
		*c = scriptCall{runs: c.runs[:0]}
	}
	b.free = append(b.free, b.calls...)
	clear(b.calls)
	b.calls, b.open = b.calls[:0], b.open[:0]
	clear(b.last)
}

// exchange sends calls and waits for their replies; command makes what is sent of each.
func (s *Store) exchange(ctx context.Context, calls []*scriptCall, command func(*scriptCall, context.Context, *Store)) {
	for _, c := range calls {
		command(c, ctx, s)
	}
	if len(calls) == 1 {
		_ = s.client.Process(ctx, calls[0].cmd) // the command keeps the error
		return
	}
	pipe := s.client.Pipeline()
	for _, c := range calls {
		_ = pipe.Process(ctx, c.cmd)
	}
	_, _ = pipe.Exec(ctx)
}

// again sends once more what the server has refused without executing it: a script that it does not know, by its text;
// and keys that turn out to lie on several nodes, each by itself.
//
// So is what a connection answered with READONLY: after a failover, pooled connections to the old master do so. The client
// drops each, and a batch meets them one by one, where single callers would meet them all at once.
func (s *Store) again(ctx context.Context, b *batch) {
	for range oldConnections {
		var refused []*scriptCall
		for _, c := range b.calls {
			if goredis.IsReadOnlyError(c.cmd.Err()) {
				refused = append(refused, c)
			}
		}
		if len(refused) == 0 {
			break
		}
		s.exchange(ctx, refused, (*scriptCall).byName)
	}
	var unknown []*scriptCall
	split := false
	for _, c := range b.calls {
		switch err := c.cmd.Err(); {
		case noScript(err):
			unknown = append(unknown, c)
		case len(c.runs) > 1 && (crossSlot(err) || tryAgain(err)):
			if crossSlot(err) {
				s.sharded.Store(true)
			}
			split = true
		}
	}
	if split {
		from := len(b.calls)
		for _, c := range b.calls[:from] {
			if err := c.cmd.Err(); len(c.runs) > 1 && (crossSlot(err) || tryAgain(err)) {
				for _, r := range c.runs {
					one := b.call()
					one.script, one.params, one.runs = c.script, c.params, append(one.runs, r)
					for at := r.first; at != nil; at = at.next {
						one.takes++
					}
				}
				c.runs = c.runs[:0]
			}
		}
		s.exchange(ctx, b.calls[from:], (*scriptCall).byName)
		for _, c := range b.calls[from:] {
			if noScript(c.cmd.Err()) {
				unknown = append(unknown, c)
			}
		}
	}
	if len(unknown) > 0 {
		s.exchange(ctx, unknown, (*scriptCall).byText)
	}
}

// oldConnections is how many a batch tries before it believes that the server is a replica: as many as the lanes of a
// node can have open, each one to the client's pool for commands and one to that for pipelines.
const oldConnections = 2 * nodeLanes

// byName makes the command that names the script.
func (c *scriptCall) byName(ctx context.Context, s *Store) {
	var keys int
	var args []any
	switch {
	case c.own != nil:
		w := c.own.own
		c.sent, keys = w.script, len(w.keys)
		args = make([]any, 3, 3+keys+len(w.args))
		for _, k := range w.keys {
			args = append(args, k)
		}
		args = append(args, w.args...)
	case c.takes == 1:
		r := c.runs[0].first
		c.sent, keys = s.scripts.charge(c.script), 1
		args = make([]any, 3, 6+len(c.params))
		args = append(args, r.key, s.now(), r.ask.N)
		args = appendNumbers(args, c.params)
	default:
		c.sent, keys = s.scripts.batch(c.script), 0
		args = make([]any, 3, 5+len(c.params)+3*c.takes)
		for _, run := range c.runs {
			for r := run.first; r != nil; r = r.same() {
				args = append(args, r.key)
				keys++
			}
		}
		args = append(args, s.now(), len(c.params))
		args = appendNumbers(args, c.params)
		if c.ones() {
			break
		}
		for _, run := range c.runs {
			for r := run.first; r != nil; {
				next, times := r.same(), 0
				n := r.ask.N
				for ; r != next; r = r.next {
					times++
				}
				args = append(args, n, times)
			}
		}
	}
	args[0], args[1], args[2] = "evalsha", c.sent.sha, keys
	c.command(ctx, args)
}

// ones tells whether one caller asks for 1 on each key.
func (c *scriptCall) ones() bool {
	return c.takes == len(c.runs) && !slices.ContainsFunc(c.runs, func(r run) bool { return r.first.ask.N != 1 })
}

// same returns the next request on the key that asks for another n.
func (r *request) same() *request {
	n := r.ask.N
	for r = r.next; r != nil && r.ask.N == n; r = r.next {
	}
	return r
}

// byText makes the same command with the script itself.
func (c *scriptCall) byText(ctx context.Context, s *Store) {
	args := c.cmd.Args()
	args[0], args[1] = "eval", c.sent.source
	c.command(ctx, args)
}

func (c *scriptCall) command(ctx context.Context, args []any) {
	c.cmd = once{goredis.NewCmd(ctx, args...)}
	c.cmd.SetFirstKeyPos(3)
}

func appendNumbers(args []any, numbers []int64) []any {
	for _, n := range numbers {
		args = append(args, n)
	}
	return args
}

// answer ends the requests of a batch with what Redis replied.
func (s *Store) answer(b *batch, f *flight) {
	received := s.elapsed()
	for _, c := range b.calls {
		reply, err := c.cmd.Result()
		if c.own != nil {
			c.own.reply = reply
			c.own.fail(err, f)
			c.own.end()
			continue
		}
		if err == nil {
			err = c.decide(&s.denials, reply, f.left, received)
		}
		for _, run := range c.runs {
			for r := run.first; r != nil; {
				next := r.next
				if err != nil {
					r.fail(err, f)
				}
				r.end()
				r = next
			}
		}
	}
}

// fail keeps the error of a request.
func (r *request) fail(err error, f *flight) {
	if r.err = err; err != nil && !r.gone() {
		r.repeated = f.told.again()
	}
}

// decide makes the decisions of charges. An error is one of the whole call; one of a key is in its requests.
func (c *scriptCall) decide(known *denials, reply any, sent, received int64) error {
	if c.takes == 1 {
		r := c.runs[0].first
		var state algorithm.State
		r.decision, state, r.err = readOne(&r.ask, c.script, reply)
		if r.err == nil {
			known.learn(r, state, sent, received)
		}
		return nil
	}
	in := newReader(reply)
	now, passed := in.now(), in.whole("allowed")
	for _, run := range c.runs {
		state, err := in.words(run.first.ask.Key.Rule, c.script)
		if in.err != nil {
			return in.err
		}
		var before *request
		for r := run.first; r != nil; r = r.next {
			switch {
			case err != nil:
				r.err = err
				continue
			case before != nil && before.ask.N == r.ask.N && !before.decision.Allowed: // so is this one
				r.decision = before.decision
			default:
				state, r.decision = r.ask.Strategy.Take(state, now, r.ask.N)
				known.learn(r, state, sent, received)
			}
			if r.decision.Allowed {
				passed--
			}
			before = r
		}
	}
	if err := in.end(); err != nil {
		return err
	}
	if passed != 0 {
		return fmt.Errorf("%w: of %d charges, Redis allowed %d more than Go", sluice.ErrState, c.takes, passed)
	}
	return nil
}
