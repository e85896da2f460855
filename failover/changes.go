package failover

import (
	"sync"
	"sync/atomic"
)

// changes delivers changes of state in order, outside every lock. They are added under gobreaker's lock.
type changes struct {
	tell   func(from, to State)
	queued atomic.Int32 // so that a call that finds none takes no lock

	mu      sync.Mutex
	queue   []change
	telling bool // some call is delivering: it takes the others' along
}

type change struct{ from, to State }

// mostChanges bounds the queue while OnChange hangs; the oldest are dropped.
const mostChanges = 256

func (c *changes) add(from, to State) {
	if c.tell == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == mostChanges {
		c.queue = c.queue[1:]
	}
	c.queue = append(c.queue, change{from, to})
	c.queued.Store(int32(len(c.queue)))
}

// deliver tells all that is queued, unless another call, which may be this one's caller, is at it.
func (c *changes) deliver() {
	if c.queued.Load() == 0 {
		return
	}
	for {
		next, ok := c.next()
		if !ok {
			return
		}
		c.tellOne(next)
	}
}

func (c *changes) next() (change, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.telling || len(c.queue) == 0 {
		return change{}, false
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	c.queued.Store(int32(len(c.queue)))
	c.telling = true
	return next, true
}

func (c *changes) tellOne(next change) {
	defer func() { // a panic of OnChange is its caller's, and ends no delivery
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
	}()
	c.tell(next.from, next.to)
}
