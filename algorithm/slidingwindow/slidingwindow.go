// Package slidingwindow smooths the boundary of a fixed window: it weighs what the previous window counted by the
// part of it that still lies within one Period of now.
//
// Two counters stand for the whole log of requests: an estimate that assumes that the previous window's requests were
// evenly spread. It is never above Count by that weighing, and near to it by an exact log. Choose it where a hard
// "N per Period" is promised.
package slidingwindow

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

//go:embed slidingwindow.lua
var source string

// script is shared by all windows: same strategy means same *Script.
var script = &algorithm.Script{Name: "sliding_window", Source: source, Words: []string{"previous", "current", "start"}}

// Window is a sliding window of two counters. It is immutable and safe for concurrent use.
//
// A counter below 0 includes a debt: see [Window.Adjust].
type Window struct {
	count  int64 // units a window
	period int64 // ticks
	tick   int64 // µs
	params []int64
	limit  algorithm.Limit
}

// ticks are the clock ticks tried, finest first, in µs.
var ticks = [...]int64{1, 1_000, 1_000_000}

// New returns a window of l.Count units in any l.Period, as far as two counters can tell, on the finest tick of 1 µs,
// 1 ms or 1 s that divides the period and keeps the weighing exact. Its error names the field and the bound.
func New(l algorithm.Limit) (*Window, error) {
	if err := l.CheckWindow("slidingwindow"); err != nil {
		return nil, err
	}
	if l.Period > algorithm.MaxPeriod/2 { // a count is forgotten after two periods
		return nil, fmt.Errorf("slidingwindow: Period %v: want at most %v (2^49 µs)", l.Period, algorithm.MaxPeriod/2)
	}
	period, most := int64(l.Period/time.Microsecond), int64(0)
	for _, tick := range ticks {
		if period%tick != 0 {
			break
		}
		w := &Window{count: l.Count, period: period / tick, tick: tick, limit: l}
		if most = (algorithm.Bound - 1) / (2 * w.period); l.Count <= most {
			w.params = []int64{w.period, l.Count, tick}
			return w, nil
		}
	}
	return nil, fmt.Errorf("slidingwindow: Count %d: want at most %d per %v, to keep arithmetic exact below 2^52",
		l.Count, most, l.Period)
}

// Take allows n units if ceil(previous·left/Period) + current + n <= Count, where left is what remains of the running
// window: the weight by which the previous window still counts. The formula is that of
// https://blog.cloudflare.com/counting-things-a-lot-of-different-things/, rounded up so that it never admits more.
func (w *Window) Take(s algorithm.State, now, n int64) (algorithm.State, algorithm.Decision) {
	d := w.TakeIn(&s, now, n)
	return s, d
}

// TakeIn is Take on a state that stays where it is: for stores in memory, to which copies are a large part of the time.
func (w *Window) TakeIn(s *algorithm.State, now, n int64) (d algorithm.Decision) {
	previous, current, start := w.running(s, now)
	weighed, left := w.seen(previous), w.left(start, now)
	spent := ceil(weighed*left, w.period) + abs(current)
	d.Limit, d.At, d.Remaining = w.count, now, max(0, w.count-spent)
	switch {
	case n == 0:
		d.Allowed = true
	case uint64(n) > uint64(w.count): // a negative n is a large unsigned one
		d.RetryAfter = algorithm.Never
	case spent+n > w.count:
		d.RetryAfter = µs(w.passes(weighed, current, start, n) - now)
	default:
		current = abs(current) + n
		s[0], s[1], s[2] = previous, current, start
		d.Allowed, d.Charged, d.Remaining = true, n, w.count-spent-n
	}
	d.ResetAfter = w.reset(previous, current, start, now)
	return d
}

// passes is when n units will pass that do not yet: as the previous window fades, or else as the running one, once it
// has become the previous, does.
func (w *Window) passes(weighed, current, start, n int64) int64 {
	end := start + w.period*w.tick
	room := w.count - n - abs(current)
	if room < 0 {
		weighed, room, end = w.seen(current), w.count-n, end+w.period*w.tick
	}
	return end - room*w.period/weighed*w.tick
}

// Adjust counts n units more in the running window, up to one Count over; or gives n back, if they were charged in
// the running window. What is added beyond Count is a debt: the counter is written as a negative, and weighs in full
// when its window has passed. Without that mark a counter above Count stems from a larger limit that was edited down,
// and weighs as Count.
func (w *Window) Adjust(s algorithm.State, now, n, at int64) algorithm.State {
	previous, current, start := w.running(&s, now)
	count, owed := abs(current), current < 0
	switch {
	case n < 0 && at >= start:
		count = max(0, count+max(n, -algorithm.Bound))
	case n > 0 && count < 2*w.count:
		count, owed = min(count+min(n, 2*w.count), 2*w.count), true
	}
	if count == 0 && previous == 0 {
		return algorithm.State{}
	}
	if owed && count > w.count {
		count = -count
	}
	return algorithm.State{previous, count, start}
}

// running returns the counters as of the window that now lies in. A stored window that is later runs on: the clock
// stepped back. One that does not start on a multiple of the period was of another period, and is not counted.
func (w *Window) running(s *algorithm.State, now int64) (previous, current, start int64) {
	period := w.period * w.tick
	start = now - now%period
	switch stored := s[2]; {
	case stored >= start && stored%period == 0:
		return s[0], s[1], stored
	case stored == start-period:
		return s[1], 0, start
	}
	return 0, 0, start
}

// seen is a counter as this limit weighs it: at most Count, or twice that where it includes a debt.
func (w *Window) seen(counter int64) int64 {
	if counter < 0 {
		return min(-counter, 2*w.count)
	}
	return min(counter, w.count)
}

// left is how many ticks of the window that starts at start are still to come.
func (w *Window) left(start, now int64) int64 {
	if now <= start {
		return w.period
	}
	return w.period - (now-start)/w.tick
}

// reset is the time until neither counter weighs.
func (w *Window) reset(previous, current, start, now int64) time.Duration {
	period := w.period * w.tick
	switch {
	case current != 0:
		return µs(start + 2*period - now)
	case previous != 0:
		return µs(start + period - now)
	}
	return 0
}

// Lua returns the twin. Its parameters: Period in ticks, Count, µs per tick.
func (w *Window) Lua() (*algorithm.Script, []int64) { return script, w.params }

// Limit returns the limit as given to New.
func (w *Window) Limit() algorithm.Limit { return w.limit }

func ceil(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}

func abs(n int64) int64 { return max(n, -n) }

func µs(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
