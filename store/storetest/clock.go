package storetest

import (
	"sync"
	"time"
)

// Start is what a Clock shows at first, and at the start of each case: a whole minute, hour and day.
var Start = time.Date(2027, time.January, 15, 0, 0, 0, 0, time.UTC)

// Clock is a clock that stands still until it is set. The zero Clock shows Start. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	set   bool
	shows time.Time
}

// Now returns the time that the clock shows: pass it to a store as its clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if !c.set {
		return Start
	}
	return c.shows
}

// Advance moves the clock by d; a negative d steps it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shows, c.set = c.now().Add(d), true
}

// Set makes the clock show t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shows, c.set = t, true
}
