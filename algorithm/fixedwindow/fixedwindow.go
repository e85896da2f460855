// Package fixedwindow counts in windows of one Period that are aligned to the Unix epoch: Count units pass in each.
//
// It is the cheapest to understand and to explain ("1000 an hour, on the hour"). Its price: 2·Count can pass around a
// boundary, Count at the end of one window and Count at the start of the next.
package fixedwindow

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

//go:embed fixedwindow.lua
var source string

// script is shared by all windows: same strategy means same *Script.
var script = &algorithm.Script{Name: "fixed_window", Source: source, Words: []string{"count", "start", "period"}}

// Window is a fixed window. It is immutable and safe for concurrent use.
type Window struct {
	count  int64 // units a window
	period int64 // µs
	params []int64
	limit  algorithm.Limit
}

// New returns a window of l.Count units each l.Period. Its error names the field and the bound: a Count from 1 to
// 2^51 - 1, a Period of a whole number of µs up to 2^50, a Burst that is 0 or Count.
func New(l algorithm.Limit) (*Window, error) {
	if err := l.CheckWindow("fixedwindow"); err != nil {
		return nil, err
	}
	if most := int64(algorithm.Bound/2 - 1); l.Count > most { // one Burst owed stays below 2^52
		return nil, fmt.Errorf("fixedwindow: Count %d: want at most %d", l.Count, most)
	}
	period := int64(l.Period / time.Microsecond)
	return &Window{count: l.Count, period: period, params: []int64{period, l.Count}, limit: l}, nil
}

// Take allows n units if count + n <= Count in the window that now lies in: start = floor(now/Period)·Period. A clock
// that stepped back stays in the running window. A state of another Period is not counted: an edited Period starts
// afresh.
func (w *Window) Take(s algorithm.State, now, n int64) (algorithm.State, algorithm.Decision) {
	d := w.TakeIn(&s, now, n)
	return s, d
}

// TakeIn is Take on a state that stays where it is: for stores in memory, to which copies are a large part of the time.
func (w *Window) TakeIn(s *algorithm.State, now, n int64) (d algorithm.Decision) {
	count, start := w.running(s, now)
	d.Limit, d.At, d.Remaining = w.count, now, max(0, w.count-count)
	end := µs(start + w.period - now)
	switch {
	case n == 0:
		d.Allowed = true
	case uint64(n) > uint64(w.count): // a negative n is a large unsigned one
		d.RetryAfter = algorithm.Never
	case count+n > w.count:
		d.RetryAfter = end
	default:
		count += n
		s[0], s[1], s[2] = count, start, w.period
		d.Allowed, d.Charged, d.Remaining = true, n, w.count-count
	}
	if count > 0 {
		d.ResetAfter = end
	}
	return d
}

// Adjust counts n units more in the running window, up to one Count over; or gives n back, if they were charged in
// the running window. What is owed on a charge of a window that has ended counts in the running one.
func (w *Window) Adjust(s algorithm.State, now, n, at int64) algorithm.State {
	count, start := w.running(&s, now)
	switch {
	case n < 0 && at >= start:
		count = max(0, count+max(n, -algorithm.Bound))
	case n > 0 && count < 2*w.count:
		count = min(count+min(n, 2*w.count), 2*w.count)
	}
	if count == 0 {
		return algorithm.State{}
	}
	return algorithm.State{count, start, w.period}
}

// running returns the window that now lies in and what was counted in it. Where the stored window is later, the clock
// stepped back, and the stored one runs on.
func (w *Window) running(s *algorithm.State, now int64) (count, start int64) {
	start = now - now%w.period
	if s[2] == w.period && s[1] >= start {
		return max(0, s[0]), s[1]
	}
	return 0, start
}

// Lua returns the twin. Its parameters: Period in µs, Count.
func (w *Window) Lua() (*algorithm.Script, []int64) { return script, w.params }

// Limit returns the limit as given to New.
func (w *Window) Limit() algorithm.Limit { return w.limit }

func µs(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
