package local

import (
	"crypto/sha256"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// DefaultMaxKeys is the most keys a store keeps where its options do not say.
const DefaultMaxKeys = 1 << 20

// keys is what a store keeps of each key, within a bound: a State, or Buckets' *bucket. The zero V is a key that was
// never seen.
//
// A decision on a key that is kept writes to that key's entry alone, so that cores do not wait for each other.
type keys[V any] struct {
	clock  clock
	seed   maphash.Seed
	rules  atomic.Pointer[[]*rule[V]]
	adding sync.Mutex       // serializes writers of rules
	copyOf func(V, int64) V // copies an overflow value, for a key that starts from it
	sweeps sweeps

	_         [64]byte // apart, in cache lines, from what every decision reads
	kept      room
	overflows atomic.Int64 // decisions on an overflow value
	_         [64]byte
}

// rule is the keys of one algorithm of one rule. Rules come from a program's own text, so that their number needs no
// bound.
type rule[V any] struct {
	name   string
	script *algorithm.Script
	no     int              // its place in keys.rules
	tables [tables]table[V] // by hash

	mu       sync.Mutex
	overflow V            // of all subjects that found no room
	ends     atomic.Int64 // µs: when the overflow value is as good as none
}

// tables is how many tables a rule's keys are spread over, so that callers with new keys rarely wait for each other.
const tables = 64

func (k *keys[V]) init(given func() time.Time, most int, copyOf func(V, int64) V) {
	if most <= 0 {
		most = DefaultMaxKeys
	}
	k.clock.init(given)
	k.seed = maphash.MakeSeed()
	k.kept.most = int64(most)
	k.copyOf = copyOf
	k.rules.Store(new([]*rule[V]))
}

// Len is how many keys are kept, and overflow states: at most MaxKeys, and one for each rule and algorithm.
func (k *keys[V]) Len() int {
	n, now := int(k.kept.Load()), k.clock.now()
	for _, r := range *k.rules.Load() {
		if now < r.ends.Load() {
			n++
		}
	}
	return n
}

// Overflows is how many decisions were made on an overflow state for want of room since the store was made. One that
// grows means that MaxKeys is too small, or that someone floods the store with subjects.
func (k *keys[V]) Overflows() int64 { return k.overflows.Load() }

// rule returns an ask's rule and algorithm, made at its first use. Readers take no lock: rules are few, and a list of
// them is searched faster than a map.
func (k *keys[V]) rule(a *sluice.Ask) *rule[V] {
	script, _ := a.Strategy.Lua()
	for _, r := range *k.rules.Load() {
		if r.script == script && r.name == a.Key.Rule {
			return r
		}
	}
	return k.addRule(a.Key.Rule, script)
}

func (k *keys[V]) addRule(name string, script *algorithm.Script) *rule[V] {
	k.adding.Lock()
	defer k.adding.Unlock()
	old := *k.rules.Load()
	for _, r := range old { // another call may have been first
		if r.script == script && r.name == name {
			return r
		}
	}
	r := &rule[V]{name: strings.Clone(name), script: script, no: len(old)}
	next := append(old[:len(old):len(old)], r)
	k.rules.Store(&next)
	return r
}

func (k *keys[V]) hash(subject string) uint64 { return maphash.String(k.seed, subject) }

// tableNo is the number of a subject's table: of the half of the hash that tables use last.
func tableNo(hash uint64) uint64 { return hash >> 32 % tables }

// unseen is the value of a subject that has none, with its table locked: while the overflow value lasts, a copy of that,
// since the subject may have been charged there.
func (k *keys[V]) unseen(r *rule[V], now int64) (v V) {
	if now < r.ends.Load() {
		r.mu.Lock()
		v = k.copyOf(r.overflow, now)
		r.mu.Unlock()
	}
	return v
}

// keepOverflow makes v the overflow value, with r locked.
func (r *rule[V]) keepOverflow(v V, now int64, resetAfter time.Duration) {
	r.overflow = v
	r.ends.Store(now + micros(resetAfter))
}

// add makes a locked entry in a locked table for a subject that has none, or returns nil for want of room.
func (k *keys[V]) add(t *table[V], hash uint64, subject string) *entry[V] {
	if !k.kept.claim() {
		return nil
	}
	e := t.add(hash, subject)
	e.mu.Lock()
	return e
}

// keep makes v the value of a locked entry of r.
func (k *keys[V]) keep(r *rule[V], e *entry[V], v V, now int64, resetAfter time.Duration) {
	e.value = v
	k.touch(r, e, now, resetAfter)
}

// touch says how long the value of a locked entry lasts. One that is as good as none stays only as long as an unseen
// subject would start from less.
func (k *keys[V]) touch(r *rule[V], e *entry[V], now int64, resetAfter time.Duration) {
	e.expires = now + micros(resetAfter)
	if resetAfter <= 0 {
		k.forget(r, e, now)
	}
}

// forget forgets an entry that is as good as none, unless an unseen subject would start from less.
func (k *keys[V]) forget(r *rule[V], e *entry[V], now int64) {
	if e.expires = r.ends.Load(); e.expires <= now {
		e.kill()
		k.kept.Add(-1)
	}
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// longSubject is the length in bytes beyond which a subject is kept as its hash, so that a key's size has a bound.
const longSubject = 128

// bounded returns the subject, or what stands for a long one.
func bounded(subject string) string {
	if len(subject) <= longSubject {
		return subject
	}
	return digest(subject)
}

// digest is the SHA-256 of a subject, longer than any subject that is kept as it is, so that it equals none of them.
func digest(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	long := make([]byte, longSubject+1)
	copy(long, sum[:])
	return string(long)
}
