// Package local keeps states in process: [Store] runs the strategies themselves, exactly, for programs that need no
// shared budget and for tests with a clock of their own.
package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// Options are the choices of a Store. The zero Options are good for most programs.
type Options struct {
	Clock   func() time.Time // nil: the system's. Called on every decision, from many goroutines
	MaxKeys int              // most keys kept; 0: 1<<20. See Store
}

// DefaultMaxKeys is the most keys a Store keeps where Options do not say.
const DefaultMaxKeys = 1 << 20

// Store decides in process, with the strategies' own arithmetic. It is safe for concurrent use, starts no goroutine
// and needs no closing. A decision allocates nothing, unless its subject is new or longer than 128 bytes.
//
// Memory is bounded by MaxKeys, and no eviction hands anyone a fresh burst: a key is dropped only once its ResetAfter
// has passed, a few with each call. When MaxKeys are kept, subjects that are not among them share one state per rule
// and algorithm, until there is room again: [Store.Overflows] counts their decisions. As long as that state lasts, a
// subject that finds room starts from a copy of it, since it may have been charged there.
type Store struct {
	clock     clock
	seed      maphash.Seed
	keys      room
	overflows atomic.Int64 // decisions on an overflow state
	rules     atomic.Pointer[[]*rule]
	adding    sync.Mutex // serializes writers of rules

	sweeps sweeps
}

// rule is the states of one algorithm of one rule. Rules come from a program's own text, so that their number needs
// no bound.
type rule struct {
	name     string
	script   *algorithm.Script
	no       int // its place in Store.rules
	shards   [shards]shard
	mu       sync.Mutex
	overflow algorithm.State // of all subjects that found no room
	ends     atomic.Int64    // µs: when the overflow state is as good as none
}

// unseen is the state of a subject that has none of its own, with its shard locked: a copy of the overflow state while
// that lasts, since the subject may have been charged there.
func (r *rule) unseen(now int64) (s algorithm.State) {
	if now < r.ends.Load() {
		r.mu.Lock()
		s = r.overflow
		r.mu.Unlock()
	}
	return s
}

type shard struct {
	mu      sync.Mutex
	entries map[string]*entry // by subject
	sweptAt int64             // µs
	_       [40]byte          // a cache line each, so that neighbours do not contend
}

type entry struct {
	state   algorithm.State
	expires int64 // µs: when the state is as good as none
}

// New returns an empty store.
func New(o Options) *Store {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	s := &Store{clock: newClock(o.Clock), keys: room{most: int64(o.MaxKeys)}, seed: maphash.MakeSeed()}
	s.rules.Store(new([]*rule))
	return s
}

// Take decides one ask. It fails only on an Ask that is wrong in itself (ErrCost), or where ctx is done already: with
// context.Canceled, or with ErrUnavailable and context.DeadlineExceeded.
func (s *Store) Take(ctx context.Context, a sluice.Ask) (d sluice.Decision, err error) {
	if err := a.Check(); err != nil {
		return d, err
	}
	if ctx.Err() != nil {
		return d, over(ctx)
	}
	now := s.clock.now()
	s.sweep(now)

	r := s.rule(&a)
	subject := bounded(a.Key.Subject)
	sh := &r.shards[s.shardNo(subject)]
	sh.mu.Lock()
	e := sh.entries[subject]
	var old, next algorithm.State
	switch {
	case e != nil:
		old = e.state
	case s.room(sh, now):
		old = r.unseen(now)
	default: // still locked, lest another call of the subject finds room meanwhile
		d = s.takeOverflow(r, &a, now)
		sh.mu.Unlock()
		return d, nil
	}
	if a.Mode == sluice.Charge { // what Decide does, without the copies
		next, d = a.Strategy.Take(old, now, a.N)
	} else {
		next, d = a.Decide(old, now)
	}
	if next != old {
		s.put(r, sh, subject, e, next, now, d.ResetAfter)
	} else if e == nil {
		s.keys.Add(-1)
	}
	sh.mu.Unlock()
	d.Source = sluice.Local
	return d, nil
}

// over is the error of a call whose context has ended.
func over(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded)
}

// takeOverflow decides for a subject that found no room, on the state that all such subjects of its rule share.
func (s *Store) takeOverflow(r *rule, a *sluice.Ask, now int64) sluice.Decision {
	r.mu.Lock()
	next, d := a.Decide(r.overflow, now)
	if next != r.overflow && a.Mode != sluice.Reset { // one subject's reset must not free the others
		r.keep(next, now, d.ResetAfter)
	}
	r.mu.Unlock()
	s.overflows.Add(1)
	d.Source = sluice.Local
	return d
}

// keep makes next the overflow state, with r locked.
func (r *rule) keep(next algorithm.State, now int64, resetAfter time.Duration) {
	r.overflow = next
	r.ends.Store(now + resetAfter.Microseconds())
}

// room claims room for one key more, looking for some in a locked shard if need be.
func (s *Store) room(sh *shard, now int64) bool {
	if s.keys.claim() {
		return true
	}
	s.makeRoom(sh, now)
	return s.keys.claim()
}

// put keeps next as the subject's state, with sh locked. e is what is kept of it so far; where that is nil, room was
// claimed. A zero state is kept only as long as an unseen subject's would not be zero.
func (s *Store) put(r *rule, sh *shard, subject string, e *entry, next algorithm.State, now int64, resetAfter time.Duration) {
	expires := now + resetAfter.Microseconds()
	if next == (algorithm.State{}) {
		expires = r.ends.Load()
	}
	switch {
	case next == algorithm.State{} && expires <= now:
		delete(sh.entries, subject)
		s.keys.Add(-1)
	case e != nil:
		e.state, e.expires = next, expires
	default:
		if sh.entries == nil {
			sh.entries = make(map[string]*entry)
		}
		// The caller's string may be a part of something large.
		sh.entries[strings.Clone(subject)] = &entry{next, expires}
	}
}

// Len is how many states are kept, overflow states included: at most MaxKeys, and one for each rule and algorithm.
// (A call that is running may count as a key.)
func (s *Store) Len() int {
	n, now := int(s.keys.Load()), s.clock.now()
	for _, r := range *s.rules.Load() {
		if now < r.ends.Load() {
			n++
		}
	}
	return n
}

// Overflows is how many decisions were made on a shared state for want of room since New. One that grows means that
// MaxKeys is too small, or that someone floods the store with subjects.
func (s *Store) Overflows() int64 { return s.overflows.Load() }

// rule returns the states of an ask's rule and algorithm, made at its first use. Readers take no lock: rules are few,
// and a list of them is searched faster than a map.
func (s *Store) rule(a *sluice.Ask) *rule {
	script, _ := a.Strategy.Lua()
	if r := find(*s.rules.Load(), a.Key.Rule, script); r != nil {
		return r
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	old := *s.rules.Load()
	if r := find(old, a.Key.Rule, script); r != nil {
		return r
	}
	r := &rule{name: strings.Clone(a.Key.Rule), script: script, no: len(old)}
	next := append(old[:len(old):len(old)], r)
	s.rules.Store(&next)
	return r
}

func find(rules []*rule, name string, script *algorithm.Script) *rule {
	for _, r := range rules {
		if r.script == script && r.name == name {
			return r
		}
	}
	return nil
}

func (s *Store) shardNo(subject string) uint64 { return maphash.String(s.seed, subject) % shards }

// longSubject is the length in bytes beyond which a subject is kept as its hash, so that a key's size has a bound.
const longSubject = 128

// bounded returns the subject, or, marked so that it equals no short one, the SHA-256 of a long one.
func bounded(subject string) string {
	if len(subject) <= longSubject {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))
	long := make([]byte, longSubject+1) // longer than any subject that is kept as it is
	copy(long, sum[:])
	return string(long)
}
