package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Manners are what a client does that is denied.
type Manners uint8

const (
	GoAway  Manners = iota // asks once
	Polite                 // comes back when Retry-After has passed
	Rude                   // comes back at once: after Pause
	Backoff                // comes back after a random time of up to Pause, then of up to twice that, and so on
)

// String returns none, polite, rude or backoff.
func (m Manners) String() string {
	return [...]string{"none", "polite", "rude", "backoff"}[min(m, Backoff)]
}

// Clients are what those do who are denied.
type Clients struct {
	Manners
	Pause time.Duration // rude: a round trip, 0: 10ms. backoff: the first range, 0: 100ms; no range is above 30s
	Tries int           // most that a client makes for one request; 0: 10
}

const (
	mostTries   = 1000
	mostWaiting = 1 << 20 // clients that wait to come back; more go away, and are counted
	mostBackoff = 30 * time.Second
)

// Check says what of c can't be run.
func (c Clients) Check() error {
	switch {
	case c.Manners > Backoff:
		return fmt.Errorf("sim: Manners %d: want 0 to %d", c.Manners, Backoff)
	case c.Pause < 0 || c.Pause > 0 && c.Pause < time.Microsecond:
		return fmt.Errorf("sim: Pause %v: want at least 1µs", c.Pause)
	case c.Tries < 0 || c.Tries > mostTries:
		return fmt.Errorf("sim: Tries %d: want 1 to %d", c.Tries, mostTries)
	}
	return nil
}

// Filled is c with its defaults.
func (c Clients) Filled() Clients {
	if c.Pause == 0 {
		c.Pause = 10 * time.Millisecond
		if c.Manners == Backoff {
			c.Pause = 100 * time.Millisecond
		}
	}
	if c.Tries == 0 {
		c.Tries = 10
	}
	return c
}

// wait is how long a client waits after its n-th try, from 1, was denied; false if it goes away.
func (c Clients) wait(try int, d *algorithm.Decision, r *rand.Rand) (µs int64, again bool) {
	if c.Manners == GoAway || try >= c.Tries || d.RetryAfter == algorithm.Never {
		return 0, false
	}
	switch c.Manners {
	case Polite:
		return d.RetryAfter.Microseconds(), true
	case Rude:
		return c.Pause.Microseconds(), true
	}
	most := min(c.Pause<<min(try-1, 30), mostBackoff)
	if most < c.Pause { // the shift overflowed, or Pause is above the most
		most = max(c.Pause, mostBackoff)
	}
	return 1 + r.Int64N(most.Microseconds()), true
}

// waiter is a client that will come back.
type waiter struct {
	Request       // at its next time
	first   int64 // when it came first, µs
	try     int   // that it will make
	order   int64 // of those at one time, the first to be denied comes first
}

// waiters is a heap, the next to come on top.
type waiters struct {
	heap  []waiter
	order int64
}

func (h *waiters) less(i, j int) bool {
	a, b := &h.heap[i], &h.heap[j]
	return a.At < b.At || a.At == b.At && a.order < b.order
}

// push adds a client; false if too many wait.
func (h *waiters) push(w waiter) bool {
	if len(h.heap) >= mostWaiting {
		return false
	}
	h.order++
	w.order = h.order
	h.heap = append(h.heap, w)
	for i := len(h.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h.heap[i], h.heap[up] = h.heap[up], h.heap[i]
		i = up
	}
	return true
}

func (h *waiters) pop() waiter {
	top, last := h.heap[0], len(h.heap)-1
	h.heap[0] = h.heap[last]
	h.heap = h.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && h.less(down+1, down) {
			down++
		}
		if !h.less(down, i) {
			return top
		}
		h.heap[i], h.heap[down] = h.heap[down], h.heap[i]
		i = down
	}
}
