package local

import "time"

// sweepEvery is how often each shard is searched for expired entries, in µs, while there are calls.
const sweepEvery = int64(10 * time.Second / time.Microsecond)

// sweep drops expired entries from the shards that are due: one of each rule each time a part of sweepEvery has passed, more if
// calls are rarer than that. Any call sweeps, denied ones too, so that memory falls whatever the traffic is.
func (s *Store) sweep(now int64) {
	due := s.sweepAt.Load()
	if now < due && due-now <= sweepEvery {
		return
	}
	const step = sweepEvery / shards
	if !s.sweepAt.CompareAndSwap(due, now+step) {
		return // another call does it
	}
	s.clock.follow()
	n := int64(1)
	if due != 0 && now > due {
		n = min(shards, (now-due)/step+1)
	}
	for range n {
		no := s.sweepNo.Add(1) % shards
		for _, r := range *s.rules.Load() {
			sh := &r.shards[no]
			sh.mu.Lock()
			s.drop(sh, now)
			sh.mu.Unlock()
		}
	}
}

// drop removes the expired entries of a locked shard.
func (s *Store) drop(sh *shard, now int64) {
	sh.sweptAt = now
	before := len(sh.entries)
	for k, e := range sh.entries {
		if e.expires <= now {
			delete(sh.entries, k)
		}
	}
	s.keys.Add(int64(len(sh.entries) - before))
	if len(sh.entries) == 0 {
		sh.entries = nil // a map keeps the room it once had
	}
}

// claim takes room for one key more, if there is some. Who then keeps no key gives it back: keys.Add(-1).
func (s *Store) claim() bool {
	for {
		n := s.keys.Load()
		if n >= s.maxKeys {
			return false
		}
		if s.keys.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// makeRoom drops what has expired from a locked shard, if it has not been swept for a while.
func (s *Store) makeRoom(sh *shard, now int64) {
	const often = sweepEvery / 10
	if now-sh.sweptAt >= often || now < sh.sweptAt {
		s.drop(sh, now)
	}
}
