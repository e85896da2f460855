package local

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// bucketRule is one algorithm of one rule. Rules come from a program's own text, so that their number needs no bound.
type bucketRule struct {
	name   string
	script *algorithm.Script
	no     int // its place in Buckets.rules

	mu       sync.Mutex
	overflow bucket       // of all subjects that found no room
	ends     atomic.Int64 // µs: when the overflow bucket is as good as new
}

// bucketKey names a bucket.
type bucketKey struct {
	rule    *bucketRule
	subject string // bounded
}

// bucketParts is how many parts the keys are kept in, each with a lock of its own.
const bucketParts = 64

type bucketPart struct {
	mu      sync.Mutex
	buckets map[bucketKey]*bucket
	sweptAt int64    // µs
	_       [40]byte // a cache line each, so that neighbours do not contend
}

func (s *Buckets) partNo(subject string) uint64 { return maphash.String(s.seed, subject) % bucketParts }

// unseen is the bucket of a subject that has none: new, or, while the overflow bucket is not full, as that, since the
// subject may have been charged there.
func (r *bucketRule) unseen(now int64) *bucket {
	if now >= r.ends.Load() {
		return new(bucket)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overflow.copy(now)
}

// room claims room for one key more, looking for some in a locked part if need be. Who then keeps no key gives it
// back: keys.Add(-1).
func (s *Buckets) room(p *bucketPart, now int64) bool {
	if s.claim() {
		return true
	}
	s.makeRoom(p, now)
	return s.claim()
}

func (s *Buckets) claim() bool {
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

// makeRoom drops what has expired from a locked part, if it has not been swept for a while.
func (s *Buckets) makeRoom(p *bucketPart, now int64) {
	const often = bucketSweep / 10
	if now-p.sweptAt >= often || now < p.sweptAt {
		s.drop(p, now)
	}
}

// keep keeps a bucket that has changed, in a locked part. For one that is unseen, room was claimed.
func (s *Buckets) keep(p *bucketPart, k bucketKey, b *bucket, now int64, resetAfter time.Duration, unseen bool) {
	b.expires = now + micros(resetAfter)
	if b.expires <= now && now >= k.rule.ends.Load() { // as good as new, and an unseen one's would be too
		delete(p.buckets, k)
		s.keys.Add(-1)
		return
	}
	b.expires = max(b.expires, k.rule.ends.Load())
	if unseen {
		if p.buckets == nil {
			p.buckets = make(map[bucketKey]*bucket)
		}
		k.subject = strings.Clone(k.subject) // the caller's string may be a part of something large
		p.buckets[k] = b
	}
}

// bucketSweep is how often each part is searched for expired buckets, in µs, while there are calls.
const bucketSweep = int64(10 * time.Second / time.Microsecond)

// sweep drops expired buckets from the parts that are due: one each time a part of bucketSweep has passed, more if
// calls are rarer than that. Any call sweeps, denied ones too, so that memory falls whatever the traffic is.
func (s *Buckets) sweep(now int64) {
	due := s.sweepAt.Load()
	if now < due && due-now <= bucketSweep {
		return
	}
	const step = bucketSweep / bucketParts
	if !s.sweepAt.CompareAndSwap(due, now+step) {
		return // another call does it
	}
	s.clock.follow()
	n := int64(1)
	if due != 0 && now > due {
		n = min(bucketParts, (now-due)/step+1)
	}
	for range n {
		p := &s.parts[s.sweepNo.Add(1)%bucketParts]
		p.mu.Lock()
		s.drop(p, now)
		p.mu.Unlock()
	}
}

// drop removes the expired buckets of a locked part.
func (s *Buckets) drop(p *bucketPart, now int64) {
	p.sweptAt = now
	before := len(p.buckets)
	for k, b := range p.buckets {
		if b.expires <= now {
			delete(p.buckets, k)
		}
	}
	s.keys.Add(int64(len(p.buckets) - before))
	if len(p.buckets) == 0 {
		p.buckets = nil // a map keeps the room it once had
	}
}

// rule returns an ask's rule and algorithm, made at its first use. Readers take no lock.
func (s *Buckets) rule(a *sluice.Ask) *bucketRule {
	script, _ := a.Strategy.Lua()
	find := func(rules []*bucketRule) *bucketRule {
		for _, r := range rules {
			if r.script == script && r.name == a.Key.Rule {
				return r
			}
		}
		return nil
	}
	if r := find(*s.rules.Load()); r != nil {
		return r
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	old := *s.rules.Load()
	if r := find(old); r != nil {
		return r
	}
	r := &bucketRule{name: strings.Clone(a.Key.Rule), script: script, no: len(old)}
	next := append(old[:len(old):len(old)], r)
	s.rules.Store(&next)
	return r
}
