package local

// sweep drops expired entries from the shards that are due, of each rule. Any call sweeps, denied ones too, so that
// memory falls whatever the traffic is.
func (s *Store) sweep(now int64) {
	n := s.sweeps.due(now)
	if n == 0 {
		return
	}
	s.clock.follow()
	for range n {
		no := s.sweeps.next()
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

// makeRoom drops what has expired from a locked shard, if it has not been swept for a while.
func (s *Store) makeRoom(sh *shard, now int64) {
	if unswept(sh.sweptAt, now) {
		s.drop(sh, now)
	}
}
