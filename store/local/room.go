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

// room tells whether there is room for one key more, looking for some in a locked table if need be. It claims none.
func (k *keys[V]) room(t *table[V], now int64) bool {
	if k.kept.Load() < k.kept.most {
		return true
	}
	k.makeRoom(t, now)
	return k.kept.Load() < k.kept.most
}

// makeRoom drops what has expired from a locked table, if it has not done so for a while.
func (k *keys[V]) makeRoom(t *table[V], now int64) {
	if now-t.cleared >= sweepEvery/10 || now < t.cleared {
		t.cleared = now
		k.drop(t, now)
	}
}

// drop drops what had expired by then from a locked table.
func (k *keys[V]) drop(t *table[V], then int64) {
	if n := t.drop(then); n > 0 {
		k.kept.Add(-n)
	}
}

// idle is how long sweeps leave expired entries while half of the room is free, in µs: a key in use is not to be made
// anew time and again, only because its limit is regained soon.
const idle = int64(time.Second / time.Microsecond)

// sweepEvery is how often each table is searched for expired entries, in µs, while there are calls.
const sweepEvery = int64(10 * time.Second / time.Microsecond)

// sweeps says which tables are due to be searched.
type sweeps struct {
	at atomic.Int64 // µs: when the next is
	no atomic.Uint64
}

// due tells whether there is a table to search.
func (w *sweeps) due(now int64) bool {
	due := w.at.Load()
	return now >= due || due-now > sweepEvery
}

// claim is how many of the tables to search now: one each time a share of sweepEvery has passed, more if calls are rarer
// than that. Of several calls at once, one is told.
func (w *sweeps) claim(now int64) int64 {
	const step = sweepEvery / tables
	due := w.at.Load()
	if !w.due(now) || !w.at.CompareAndSwap(due, now+step) {
		return 0
	}
	if due != 0 && now > due {
		return min(tables, (now-due)/step+1)
	}
	return 1
}

// sweep drops idle entries from the tables that are due, of each rule. Any call sweeps, denied ones too, so that
// memory falls whatever the traffic is.
func (k *keys[V]) sweep(now int64) {
	n := k.sweeps.claim(now)
	if n > 0 {
		k.clock.follow()
	}
	then := now
	if k.kept.Load() <= k.kept.most/2 {
		then -= idle
	}
	for range n {
		no := k.sweeps.no.Add(1) % tables
		for _, r := range *k.rules.Load() {
			t := &r.tables[no]
			t.mu.Lock()
			k.drop(t, then)
			t.mu.Unlock()
		}
	}
}
