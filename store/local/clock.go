package local

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// clock tells µs since the Unix epoch. The system's clock is read as a monotonic time, which costs half as much, plus
// an offset that follows the wall clock at every sweep.
type clock struct {
	given  func() time.Time // nil: the system's
	start  time.Time
	offset atomic.Int64 // wall time less monotonic time since start, ns: in µs it would jitter by one
}

func (c *clock) init(given func() time.Time) {
	c.given, c.start = given, time.Now()
	c.follow()
}

func (c *clock) now() int64 {
	if c.given != nil {
		return algorithm.Clock(c.given())
	}
	return (c.offset.Load() + int64(time.Since(c.start))) / int64(time.Microsecond)
}

// follow takes over a step of the wall clock. Steps back are harmless: strategies act as if no time had passed.
func (c *clock) follow() {
	if c.given == nil {
		now := time.Now()
		wall := algorithm.Clock(now)*int64(time.Microsecond) + int64(now.Nanosecond())%int64(time.Microsecond)
		c.offset.Store(wall - int64(now.Sub(c.start)))
	}
}
