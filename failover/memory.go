package failover

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
)

// memory is what a guard remembers of keys: which of its two stores decided last, and the fraction of the limit that
// it left. Keys are kept as 64-bit hashes under a random seed, so that subjects of any length cost the same; were two
// of them equal, once in 2^33 full memories, a key would be charged down to what another had left.
//
// It is bounded: an entry whose ResetAfter has passed is as good as none and is dropped; beyond mostMarks, keys that
// are not among them are taken over as if nothing had been spent.
type memory struct {
	seed maphash.Seed
	// away counts entries that the fallback owns: while there are none, a call to the primary need not look.
	away  atomic.Int64
	parts [markParts]markPart
}

const (
	mostMarks = 1 << 16
	markParts = 64
	// markSweep is how often, at most, a full part is searched for entries to drop.
	markSweep = int64(100 * time.Millisecond)
)

type markPart struct {
	mu      sync.Mutex
	marks   map[hash]*mark
	sweptAt int64 // ns
	charges *[chargeSets]chargeSet
	_       [32]byte // a cache line each, so that neighbours do not contend
}

// hash names a state: Key and algorithm.
type hash uint64

// mark is the last that a guard saw of a state. The owner changes by being carried alone, so that a late answer of
// the one store can't undo what the other has taken over.
type mark struct {
	fallback bool          // owns it: it decided last
	moving   chan struct{} // closed when the carrying under way ends; nil: none
	left     left
	wipe     int64 // ns: until then the primary holds a state that was reset meanwhile
}

// left is what a decision left of a limit.
type left struct {
	fraction  float64 // Remaining / Limit
	at, reset int64   // ns: when, and when it is as good as new
	wipe      bool    // the store that takes over is to forget what it has, first
}

// says tells whether a mark says anything still.
func (k *mark) says(now int64) bool { return k.moving != nil || now < k.left.reset || now < k.wipe }

func newMemory() *memory { return &memory{seed: maphash.MakeSeed()} }

func (m *memory) hash(a *sluice.Ask) hash {
	script, _ := a.Strategy.Lua()
	// The parts have hashes of their own: joined, one could be taken for another.
	x := bits.RotateLeft64(maphash.String(m.seed, a.Key.Rule), 21) * 0x9e3779b97f4a7c15
	x = (x ^ maphash.String(m.seed, script.Name)) * 0xff51afd7ed558ccd
	return hash(x ^ maphash.String(m.seed, a.Key.Subject))
}

func (m *memory) part(h hash) *markPart { return &m.parts[h%markParts] }

// claim says what it takes for a store to decide on a state now: nothing more (go), or first to be charged down to
// what is left, which ends with moved; or another call is at that, until moving is closed.
func (m *memory) claim(h hash, fallback bool, now int64) (l left, carry bool, moving <-chan struct{}) {
	p := m.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.marks[h]
	switch {
	case k == nil, k.fallback == fallback && k.moving == nil:
		return left{}, false, nil
	case k.moving != nil:
		return left{}, false, k.moving
	case !k.says(now):
		m.drop(p, h, k)
		return left{}, false, nil
	}
	k.moving = make(chan struct{})
	l = k.left
	l.wipe = now < k.wipe
	return l, true, nil
}

// owner tells whether the fallback owns a state.
func (m *memory) owner(h hash) (fallback bool) {
	p := m.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.marks[h]
	return k != nil && k.fallback
}

// moved ends a claim. ok: the store that claimed owns the state now.
func (m *memory) moved(h hash, fallback, ok bool) {
	p := m.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.marks[h]
	if k == nil || k.moving == nil {
		return
	}
	close(k.moving)
	k.moving = nil
	if ok && k.fallback != fallback {
		k.fallback, k.wipe = fallback, 0
		if fallback {
			m.away.Add(1)
		} else {
			m.away.Add(-1)
		}
	}
}

// sawPrimary remembers a decision of the primary.
func (m *memory) sawPrimary(h hash, d *sluice.Decision, now int64) {
	p := m.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	m.saw(p, h, false, d, now)
}

// sawFallback remembers a decision of the fallback: what it charged, if that may be settled, and what it left, if that
// is to be carried.
func (m *memory) sawFallback(h hash, d *sluice.Decision, settles, carries bool, now int64) {
	p := m.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if settles {
		p.charged(h, d.At)
	}
	if carries {
		m.saw(p, h, true, d, now)
	}
}

func (m *memory) saw(p *markPart, h hash, fallback bool, d *sluice.Decision, now int64) {
	fresh := d.ResetAfter <= 0 || d.Remaining >= d.Limit
	k := p.marks[h]
	switch {
	case k != nil && k.fallback != fallback:
		return
	case fresh && k != nil && k.moving == nil && now >= k.wipe:
		m.drop(p, h, k)
		return
	case k == nil:
		if fresh || !m.room(p, now) {
			return
		}
		k = &mark{fallback: fallback}
		m.add(p, h, k)
	}
	k.left = left{
		fraction: float64(max(0, d.Remaining)) / float64(max(1, d.Limit)),
		at:       now,
		reset:    later(now, max(0, d.ResetAfter)),
	}
}

// later is now and d, at most the end of time.
func later(now int64, d time.Duration) int64 {
	if t := now + int64(d); t >= now {
		return t
	}
	return math.MaxInt64
}

// forget makes a state one that was never seen. Where the primary could not be told, it is to forget it when it takes
// over, until a time when what it had is as good as new.
func (m *memory) forget(h hash, now, wipe int64) {
	p := m.part(h)
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.marks[h]; k != nil {
		if k.moving != nil {
			close(k.moving)
		}
		m.drop(p, h, k)
	}
	if wipe > now && m.room(p, now) {
		m.add(p, h, &mark{fallback: true, left: left{fraction: 1, at: now, reset: now}, wipe: wipe})
	}
}

func (m *memory) add(p *markPart, h hash, k *mark) {
	if p.marks == nil {
		p.marks = make(map[hash]*mark)
	}
	p.marks[h] = k
	if k.fallback {
		m.away.Add(1)
	}
}

// drop removes an entry of a locked part.
func (m *memory) drop(p *markPart, h hash, k *mark) {
	delete(p.marks, h)
	if k.fallback {
		m.away.Add(-1)
	}
}

// room tells whether a locked part has room for one more entry, looking for some if it is full.
func (m *memory) room(p *markPart, now int64) bool {
	const most = mostMarks / markParts
	if len(p.marks) < most {
		return true
	}
	if now-p.sweptAt >= markSweep {
		p.sweptAt = now
		for h, k := range p.marks {
			if !k.says(now) {
				m.drop(p, h, k)
			}
		}
	}
	return len(p.marks) < most
}
