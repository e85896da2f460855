// Package leaky smooths strictly: a queue of Burst places that lets Count units a Period leave, evenly spaced. A
// request that finds a place is allowed with a Delay, and is to be held that long before acting.
//
// No more than Count·t/Period + 1 units act in any time t; the price is waiting. Choose it in front of a back end
// that cannot take two requests at once.
package leaky

import (
	_ "embed"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/internal/level"
)

//go:embed leaky.lua
var source string

// script is shared by all queues: same strategy means same *Script.
var script = &algorithm.Script{Name: "leaky_bucket", Source: level.Source + source, Words: []string{"queued", "ts", "unit"}}

// Queue is a leaky bucket as a queue. It is immutable and safe for concurrent use.
type Queue struct {
	level  level.Level
	params []int64
	limit  algorithm.Limit
}

// New returns a queue of l.Burst places, the one now leaving counted, from which l.Count units leave each l.Period.
// Errors are those of a token bucket of the same limit.
func New(l algorithm.Limit) (*Queue, error) {
	v, err := level.New("leaky", l)
	if err != nil {
		return nil, err
	}
	return &Queue{level: v, params: v.Params(), limit: l}, nil
}

// Take gives n units a place each if there is room. With queued(t) = max(0, queued - Count·(t-ts)/Period), there is
// room if queued(now) + n <= Burst, and Delay = queued(now)·Period/Count, rounded up to a tick: the time until those
// before it have left. A Burst of 1 never delays. Remaining is the room left. See
// https://en.wikipedia.org/wiki/Leaky_bucket#As_a_queue.
func (q *Queue) Take(s algorithm.State, now, n int64) (next algorithm.State, d algorithm.Decision) {
	d = q.TakeIn(&s, now, n)
	return s, d
}

// TakeIn is Take on a state that stays where it is: for stores in memory, to which copies are a large part of the time.
func (q *Queue) TakeIn(s *algorithm.State, now, n int64) (d algorithm.Decision) {
	before, ok := q.level.TakeUsual(s, &d, now, n)
	if !ok {
		before = q.level.Take(s, &d, now, n)
	}
	if d.Charged > 0 {
		d.Delay = q.level.Delay(before)
	}
	return d
}

// Adjust adds n units to the end of the queue, up to one Burst over, or gives n places back. Those already promised
// a time keep it: what is given back shortens the wait of those who come later.
func (q *Queue) Adjust(s algorithm.State, now, n, at int64) algorithm.State {
	return q.level.Adjust(s, now, n)
}

// Lua returns the twin. Its parameters: units per place, units leaving per tick, Burst, and µs per tick where that is not 1.
func (q *Queue) Lua() (*algorithm.Script, []int64) { return script, q.params }

// Limit returns the limit as given to New.
func (q *Queue) Limit() algorithm.Limit { return q.limit }
