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

type bucketPart struct {
	mu      sync.Mutex
	buckets map[bucketKey]*bucket
	sweptAt int64    // µs
	_       [40]byte // a cache line each, so that neighbours do not contend
}

func (s *Buckets) partNo(subject string) uint64 { return maphash.String(s.seed, subject) % shards }

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
	if s.keys.claim() {
		return true
	}
	s.makeRoom(p, now)
	return s.keys.claim()
}

// makeRoom drops what has expired from a locked part, if it has not been swept for a while.
func (s *Buckets) makeRoom(p *bucketPart, now int64) {
	if unswept(p.sweptAt, now) {
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

// sweep drops expired buckets from the parts that are due. Any call sweeps, as in Store.
func (s *Buckets) sweep(now int64) {
	n := s.sweeps.due(now)
	if n == 0 {
		return
	}
	s.clock.follow()
	for range n {
		p := &s.parts[s.sweeps.next()]
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
