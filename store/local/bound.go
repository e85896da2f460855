package local

import (
	"sync/atomic"
	"time"
)

// room counts the keys of a store, and bounds them.
type room struct {
	atomic.Int64       // keys kept, and places claimed for more
	most         int64 // keys
}

// claim takes a place for one key more, if there is one. Who then keeps no key gives it back: Add(-1).
func (r *room) claim() bool {
	for {
		n := r.Load()
		if n >= r.most {
			return false
		}
		if r.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// shards is how many parts a store's keys are kept in, each with a lock of its own.
const shards = 64

// sweepEvery is how often each part is searched for expired entries, in µs, while there are calls.
const sweepEvery = int64(10 * time.Second / time.Microsecond)

// sweeps says which parts are due to be searched.
type sweeps struct {
	at atomic.Int64 // µs: when the next is
	no atomic.Uint32
}

// due is how many parts to search now: one each time a part of sweepEvery has passed, more if calls are rarer than
// that. Of several calls at once, one is told.
func (w *sweeps) due(now int64) int64 {
	const step = sweepEvery / shards
	due := w.at.Load()
	if now < due && due-now <= sweepEvery || !w.at.CompareAndSwap(due, now+step) {
		return 0
	}
	if due != 0 && now > due {
		return min(shards, (now-due)/step+1)
	}
	return 1
}

// next is the number of the part whose turn it is.
func (w *sweeps) next() uint32 { return w.no.Add(1) % shards }

// unswept tells whether a part that was searched then is worth another search for want of room.
func unswept(then, now int64) bool { return now-then >= sweepEvery/10 || now < then }
