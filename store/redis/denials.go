package redis

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

const (
	memory    = time.Second // of one denial
	mostKnown = 1024        // denials in one shard, 65,536 in all; further ones are not remembered
)

// denialShard remembers the states of some of the keys that Redis denied a moment ago. Others can since only have spent
// more: where the state still denies at the time that it is now on Redis's clock, Redis would deny, too, and is not asked.
//
// What this store sees of such a key later replaces its state. What could widen a limit is given back or reset by this
// store, which then forgets the key; or elsewhere, by a flush, or by an edit, and is seen when the memory ends.
type denialShard struct {
	off  bool
	any  atomic.Bool   // something is remembered
	mark atomic.Uint64 // counts what was forgotten; to be taken before a charge leaves, and given back with its denial

	mu    sync.RWMutex
	known map[denialKey]denial
	swept int64 // when those that are over were dropped last, ns since the store was made

	_ [64]byte // shards share no cache line
}

// denialKey names a state.
type denialKey struct {
	key    sluice.Key
	script string
}

// denial is a state that denied.
type denial struct {
	script *algorithm.Script
	params []int64
	state  algorithm.State
	at     int64 // on Redis's clock, or the caller's, µs
	// The decision was made after the one and before the other, ns since the store was made.
	sent, received int64
}

// known returns where the denials of a subject are remembered.
func (s *Store) known(hash uint64) *denialShard {
	return &s.denials[hash/nodeLanes%uint64(len(s.denials))]
}

// find returns what is remembered of an ask's state under its strategy.
func (s *denialShard) find(a *sluice.Ask, script *algorithm.Script, params []int64, now int64) (denial, bool) {
	s.mu.RLock()
	known, ok := s.known[denialKey{a.Key, script.Name}]
	s.mu.RUnlock()
	return known, ok && now-known.sent < int64(memory) && known.script == script && slices.Equal(known.params, params)
}

// has tells whether something is remembered of a key.
func (s *denialShard) has(k sluice.Key, script string) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.known[denialKey{k, script}]
	return ok
}

// add remembers a denial, or the state that a later charge left, unless its key may have been widened since mark, or
// there is no room.
func (s *denialShard) add(k sluice.Key, known denial, mark uint64) {
	if len(k.Subject) > longPart || len(k.Rule) > longPart { // memory is bounded in bytes, too
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mark.Load() != mark {
		return
	}
	name := denialKey{k, known.script.Name}
	old, ok := s.known[name]
	if ok && old.sent > known.sent || !ok && !s.room(known.sent) {
		return
	}
	if s.known == nil {
		s.known = make(map[denialKey]denial)
	}
	name.key = sluice.Key{Rule: strings.Clone(k.Rule), Subject: strings.Clone(k.Subject)} // they may be parts of large texts
	s.known[name] = known
	s.any.Store(true)
}

// room tells whether there is room for one more, after dropping those that are over. s.mu is held.
func (s *denialShard) room(now int64) bool {
	if len(s.known) < mostKnown {
		return true
	}
	if now-s.swept < int64(memory)/4 { // a flood of subjects is not to sweep each time
		return false
	}
	s.swept = now
	for name, other := range s.known {
		if now-other.sent >= int64(memory) {
			delete(s.known, name)
		}
	}
	return len(s.known) < mostKnown
}

// forget drops what is remembered of a key that was charged, given back to or reset in another way than by a charge.
func (s *denialShard) forget(a *sluice.Ask) {
	script, _ := a.Strategy.Lua()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, denialKey{a.Key, script.Name})
	s.any.Store(len(s.known) > 0)
	s.mark.Add(1)
}

// learn remembers the state that a charge left, if it was denied, or if a state of its key is remembered already.
func (r *request) learn(left algorithm.State, sent, received int64) {
	if r.known.off || r.decision.Allowed && !r.known.has(r.ask.Key, r.script.Name) {
		return
	}
	r.known.add(r.ask.Key, denial{r.script, r.params, left, r.decision.At, sent, received}, r.mark)
}

// knownDenial answers a charge that Redis would deny.
func (s *Store) knownDenial(shard *denialShard, a *sluice.Ask, script *algorithm.Script, params []int64) (d sluice.Decision, ok bool) {
	if !shard.any.Load() {
		return d, false
	}
	state, now, ok := s.knownState(shard, a, script, params)
	if !ok {
		return d, false
	}
	_, d = a.Strategy.Take(state, now, a.N)
	d.Source = sluice.Cached
	return d, true
}

// knownRefusal answers asks of which Redis would refuse the first.
func (s *Store) knownRefusal(asks []sluice.Ask) (v sluice.Verdict, ok bool) {
	shard := s.known(s.hash(asks[0].Key.Subject))
	if asks[0].Mode != sluice.Charge || !shard.any.Load() {
		return v, false
	}
	script, params := asks[0].Strategy.Lua()
	state, now, ok := s.knownState(shard, &asks[0], script, params)
	if !ok {
		return v, false
	}
	kept := make([]*algorithm.State, len(asks))
	for i := range kept {
		kept[i] = &state
	}
	return sluice.DecideAll(asks, kept, now, sluice.Cached), true
}

// knownState returns a state by which Redis would deny, and a time not after the one that it is there now.
//
// The time there is known but for the way that the remembered denial went: it is at most the later of two guesses, and
// if that denies, so would Redis. The answer counts from the earlier one, so that who comes back after its RetryAfter
// is not too early.
func (s *Store) knownState(shard *denialShard, a *sluice.Ask, script *algorithm.Script, params []int64) (state algorithm.State, now int64, ok bool) {
	elapsed := s.elapsed()
	known, ok := shard.find(a, script, params, elapsed)
	if !ok {
		return state, 0, false
	}
	earliest, latest := known.at+(elapsed-known.received)/1000, known.at+(elapsed-known.sent)/1000
	if s.clock != nil {
		earliest = algorithm.Clock(s.clock())
		latest = earliest
	}
	if _, d := a.Strategy.Take(known.state, latest, a.N); d.Allowed {
		return state, 0, false
	}
	return known.state, max(earliest, 0), true
}
