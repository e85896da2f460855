package local

import (
	"iter"
	"strings"
	"sync"
	"sync/atomic"
)

// table is some of the keys of a rule: an open hash table from subject to entry. What looks for an entry takes no lock
// and writes nothing, so that decisions on different keys never wait for each other; what adds or drops entries holds mu.
type table[V any] struct {
	slots atomic.Pointer[slots[V]] // nil: none

	mu      sync.Mutex
	taken   int   // slots that hold an entry, dead ones included: at most three in four
	cleared int64 // µs: when room was last looked for
	_       [32]byte
}

// slots are the places of a table, as many as a power of two. A tag is kept apart from its entry so that an entry's
// cache line, which another core may have written last, is fetched once, by the locking.
type slots[V any] struct {
	tags    []atomic.Uint32 // of the entry's subject; 0: free
	entries []atomic.Pointer[entry[V]]
}

// entry is what is kept of a key, a cache line with a State. It dies when it is forgotten, and leaves the table when that
// is next built: who finds it dead looks again with the table locked.
type entry[V any] struct {
	mu      sync.Mutex
	subject string
	expires int64 // µs: when the value is as good as none; below 0: dead
	value   V
}

const dead = -1

// kill forgets a locked entry.
func (e *entry[V]) kill() {
	var none V
	e.value, e.expires = none, dead
}

// tag is the part of a subject's hash that a table uses, never 0.
func tag(hash uint64) uint32 { return uint32(hash) | 1<<31 }

// is tells whether a locked entry is the subject's, and not dead.
func (e *entry[V]) is(subject string) bool { return e.expires >= 0 && e.subject == subject }

// guess returns the entry that is the subject's unless another's hash is the same, or nil: see [entry.is].
func (t *table[V]) guess(hash uint64) *entry[V] {
	s := t.slots.Load()
	if s == nil {
		return nil
	}
	want := tag(hash)
	for i := want; ; i++ {
		switch s.tags[i&uint32(len(s.tags)-1)].Load() {
		case want:
			return s.entries[i&uint32(len(s.entries)-1)].Load()
		case 0:
			return nil
		}
	}
}

// find returns the subject's entry, perhaps a dead one, or nil, with the table locked.
func (t *table[V]) find(hash uint64, subject string) *entry[V] {
	s := t.slots.Load()
	if s == nil {
		return nil
	}
	for i := tag(hash); ; i++ {
		e := s.entries[i&uint32(len(s.entries)-1)].Load()
		if e == nil || e.subject == subject {
			return e
		}
	}
}

// add returns the subject's entry, a dead one, with the table locked.
func (t *table[V]) add(hash uint64, subject string) *entry[V] {
	if e := t.find(hash, subject); e != nil {
		return e
	}
	if s := t.slots.Load(); s == nil || t.taken >= len(s.tags)/4*3 {
		t.build()
	}
	// The caller's string may be a part of something large.
	e := &entry[V]{subject: strings.Clone(subject), expires: dead}
	t.slots.Load().put(tag(hash), e)
	t.taken++
	return e
}

func (s *slots[V]) put(tag uint32, e *entry[V]) {
	i := tag
	for s.tags[i&uint32(len(s.tags)-1)].Load() != 0 {
		i++
	}
	i &= uint32(len(s.tags) - 1)
	s.entries[i].Store(e) // before the tag that leads to it
	s.tags[i].Store(tag)
}

// drop forgets the entries of a locked table that have expired, and returns how many. One that is being decided on
// stays.
func (t *table[V]) drop(now int64) (forgot int64) {
	dying := false
	for _, e := range t.all() {
		if !e.mu.TryLock() {
			continue
		}
		if e.expires <= now {
			dying = true
			if e.expires >= 0 {
				e.kill()
				forgot++
			}
		}
		e.mu.Unlock()
	}
	if dying {
		t.build()
	}
	if t.taken == 0 {
		t.slots.Store(nil)
	}
	return forgot
}

// build makes a locked table anew without its dead entries, with room for half as many more.
func (t *table[V]) build() {
	live := 0
	for _, e := range t.all() {
		if !e.isDead() {
			live++
		}
	}
	size := 8
	for size/4*3 <= live+live/2 {
		size *= 2
	}
	s := &slots[V]{make([]atomic.Uint32, size), make([]atomic.Pointer[entry[V]], size)}
	t.taken = 0
	for tag, e := range t.all() {
		if !e.isDead() { // no more than a moment ago
			s.put(tag, e)
			t.taken++
		}
	}
	t.slots.Store(s)
}

// isDead tells whether an entry of a locked table is dead, which it then stays.
func (e *entry[V]) isDead() bool {
	if !e.mu.TryLock() { // in use
		return false
	}
	defer e.mu.Unlock()
	return e.expires < 0
}

// all are the entries of a locked table, dead ones included, by their tags.
func (t *table[V]) all() iter.Seq2[uint32, *entry[V]] {
	return func(yield func(uint32, *entry[V]) bool) {
		s := t.slots.Load()
		if s == nil {
			return
		}
		for i := range s.tags {
			if e := s.entries[i].Load(); e != nil && !yield(s.tags[i].Load(), e) {
				return
			}
		}
	}
}
