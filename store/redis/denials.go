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

// denials remembers the states of keys that Redis denied a moment ago. Others can since only have spent more: where the
// state still denies at the time that it is now on Redis's clock, Redis would deny, too, and is not asked.
//
// What this store sees of such a key later replaces its state. What could widen a limit is given back or reset by this
// store, which then forgets the key; or elsewhere, by a flush, or by an edit, and is seen when the memory ends.
//
// A place holds one key, the one denied last: so memory is bounded, and what looks takes no lock.
type denials struct {
	off    bool
	places atomic.Pointer[[mostKnown]atomic.Pointer[denial]] // by the subject's hash; nil until something is denied
	locks  [64]denialLock                                    // for writing, by the subject's hash
}

const (
	memory    = time.Second // of one denial
	mostKnown = 1 << 15     // places of 8 bytes, and up to 10 MB of what is remembered
)

type denialLock struct {
	mu   sync.Mutex
	mark atomic.Uint64 // counts what was forgotten
	_    [48]byte      // locks share no cache line
}

// denial is a state that denied, or that a later charge left.
type denial struct {
	key    sluice.Key
	script *algorithm.Script
	params []int64
	state  algorithm.State
	at     int64 // on Redis's clock, or the caller's, µs
	// The decision was made after the one and before the other, ns since the store was made.
	sent, received int64
}

func (d *denials) lock(hash uint64) *denialLock { return &d.locks[hash%uint64(len(d.locks))] }

// mark is to be taken before a charge leaves, and given back with its decision.
func (d *denials) mark(hash uint64) uint64 { return d.lock(hash).mark.Load() }

// find returns what is remembered at a place, or nil.
func (d *denials) find(hash uint64) *denial {
	places := d.places.Load()
	if places == nil {
		return nil
	}
	return places[hash%mostKnown].Load()
}

// learn remembers the state that a charge left, if it was denied, or if its key is remembered already; unless the key may
// have been widened since the charge's mark.
func (d *denials) learn(r *request, left algorithm.State, sent, received int64) {
	k := r.ask.Key
	if d.off || len(k.Subject) > longPart || len(k.Rule) > longPart { // memory is bounded in bytes, too
		return
	}
	if r.decision.Allowed {
		if old := d.find(r.hash); old == nil || old.key != k || old.script != r.script {
			return
		}
	}
	l := d.lock(r.hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mark.Load() != r.mark {
		return
	}
	places := d.places.Load()
	if places == nil {
		d.places.CompareAndSwap(nil, new([mostKnown]atomic.Pointer[denial]))
		places = d.places.Load()
	}
	place := &places[r.hash%mostKnown]
	old := place.Load()
	same := old != nil && old.key == k && old.script == r.script
	switch {
	case same && old.sent > sent:
		return
	case same:
		k = old.key
	default: // the caller's strings may be parts of large texts
		k = sluice.Key{Rule: strings.Clone(k.Rule), Subject: strings.Clone(k.Subject)}
	}
	place.Store(&denial{k, r.script, r.params, left, r.decision.At, sent, received})
}

// forget drops what is remembered of a key that was charged, given back to or reset in another way than by a charge.
func (d *denials) forget(hash uint64, a *sluice.Ask) {
	l := d.lock(hash)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark.Add(1)
	if old := d.find(hash); old != nil && old.key == a.Key {
		d.places.Load()[hash%mostKnown].Store(nil)
	}
}

// knownDenial answers a charge that Redis would deny, in d, which a copy would make slower.
func (s *Store) knownDenial(hash uint64, a *sluice.Ask, d *sluice.Decision) bool {
	known, now := s.knownState(hash, a)
	return known != nil && known.denies(now, a, d)
}

// denies tells whether a state surely denies an ask, and answers it in d.
func (k *denial) denies(now period, a *sluice.Ask, d *sluice.Decision) bool {
	_, *d = a.Strategy.Take(k.state, now.earliest, a.N)
	d.Source = sluice.Cached
	return !d.Allowed && d.RetryAfter > now.spread() // else by the latest time it may be allowed
}

// knownRefusal answers asks of which Redis would refuse the first.
func (s *Store) knownRefusal(asks []sluice.Ask) (sluice.Verdict, bool) {
	if asks[0].Mode != sluice.Charge {
		return sluice.Verdict{}, false
	}
	known, now := s.knownState(s.hash(asks[0].Key.Subject), &asks[0])
	var d sluice.Decision
	if known == nil || !known.denies(now, &asks[0], &d) {
		return sluice.Verdict{}, false
	}
	kept, state := make([]*algorithm.State, len(asks)), known.state
	for i := range kept {
		kept[i] = &state
	}
	v := sluice.DecideAll(asks, kept, now.earliest, sluice.Cached)
	return v, v.Refused == 0
}

// period is when it is now on Redis's clock, µs. It is known but for the way that the remembered decision went. What is
// denied at the latest would be denied by Redis; the answer counts from the earliest, so that who comes back after its
// RetryAfter is not too early.
type period struct{ earliest, latest int64 }

func (p period) spread() time.Duration { return time.Duration(p.latest-p.earliest) * time.Microsecond }

// knownState returns what is remembered of an ask's state under its strategy, or nil.
func (s *Store) knownState(hash uint64, a *sluice.Ask) (*denial, period) {
	known := s.denials.find(hash)
	if known == nil || known.key != a.Key {
		return nil, period{}
	}
	script, params := a.Strategy.Lua()
	elapsed := s.elapsed()
	if known.script != script || elapsed-known.sent >= int64(memory) || !slices.Equal(known.params, params) {
		return nil, period{}
	}
	if s.clock != nil {
		now := algorithm.Clock(s.clock())
		return known, period{now, now}
	}
	return known, period{known.at + (elapsed-known.received)/1000, known.at + (elapsed-known.sent)/1000}
}
