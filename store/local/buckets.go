package local

import (
	"context"
	"math"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// BucketsOptions are the choices of Buckets. The zero BucketsOptions give each process the whole limit.
type BucketsOptions struct {
	Clock   func() time.Time // nil: the system's. Called on every decision, from many goroutines
	MaxKeys int              // most keys kept; 0: 1<<20. See Buckets
	// Share is the part of each limit that this process may admit, above 0 and at most 1; it may change at any time,
	// and is called on every decision, from many goroutines. Nil: 1. Pass failover's Breaker.Share, as service does.
	Share func() float64
}

// Buckets decides in process, with a token bucket of golang.org/x/time/rate for each key, made from what the strategy
// promises ([sluice.Strategy.Limit]) times a share: for the time in which a shared store is away. It is safe for
// concurrent use, starts no goroutine and needs no closing. A decision allocates nothing, unless its subject is new or
// longer than 128 bytes.
//
// A limit of Count per Period and Burst becomes a bucket that regains share·Count per Period, exactly, and holds
// floor(share·Burst), at least 1; a window becomes a bucket that holds Count. So a fleet whose shares add up to 1
// admits at most Burst + Count·t/Period, except where Burst is below the number of processes: then each may admit one
// unit at once, and the rate still holds. Decision.Limit is what the bucket holds; Remaining is at most that.
//
// A cost above what the bucket holds, but not above the whole Burst, passes when the bucket is full and leaves it in
// debt: it can pass in an outage as it can at other times, and over time the rate holds. A cost above the whole
// Burst is denied with Never.
//
// A bucket is no twin of its strategy: windows are approximated, and RetryAfter is rounded up to a µs. A leaky bucket
// is told by its Delay, and Buckets answers those with a Delay of its own.
//
// When the share changes, a bucket keeps the part of it that is spent; when a limit is edited, it keeps the units.
//
// Memory is bounded as in [Store]: a key is dropped only once its ResetAfter has passed. When MaxKeys are kept,
// subjects that are not among them share one bucket per rule and algorithm, until there is room again.
type Buckets struct {
	keys[*bucket]
	share func() float64
}

// NewBuckets returns an empty store.
func NewBuckets(o BucketsOptions) *Buckets {
	if o.Share == nil {
		o.Share = func() float64 { return 1 }
	}
	s := &Buckets{share: o.Share}
	s.init(o.Clock, o.MaxKeys, (*bucket).copy)
	return s
}

// leastShare keeps a rate above 0, whatever Share answers.
const leastShare = 1.0 / (1 << 20)

// shareNow is Share's answer within its bounds. What is no number counts as the least.
func (s *Buckets) shareNow() float64 {
	share := s.share()
	if !(share >= leastShare) { // NaN too
		return leastShare
	}
	return math.Min(share, 1)
}

// Take decides one ask. It fails only on an Ask that is wrong in itself (ErrCost, or a Limit that no algorithm would
// accept), or where ctx is done already: with context.Canceled, or with ErrUnavailable and context.DeadlineExceeded.
func (s *Buckets) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if err := a.Check(); err != nil {
		return sluice.Decision{}, err
	}
	if ctx.Err() != nil {
		return sluice.Decision{}, over(ctx)
	}
	now := s.clock.now()
	s.sweep(now)

	r, subject := s.rule(&a), bounded(a.Key.Subject)
	hash := s.hash(subject)
	t := &r.tables[tableNo(hash)]
	if e := t.guess(hash); e != nil {
		e.mu.Lock()
		if e.is(subject) {
			defer e.mu.Unlock()
			return s.takeLocked(r, e, &a, now)
		}
		e.mu.Unlock()
	}
	return s.takeUnseen(r, t, hash, subject, &a, now)
}

// takeLocked decides on a locked entry that is not dead.
func (s *Buckets) takeLocked(r *rule[*bucket], e *entry[*bucket], a *sluice.Ask, now int64) (sluice.Decision, error) {
	b := e.value
	switch {
	case a.Mode == sluice.Reset:
		b = new(bucket)
	case now >= e.expires:
		b.refill(now)
	}
	if err := b.shape(a.Strategy, s.shareNow(), now); err != nil {
		return sluice.Decision{}, err
	}
	d, moved := b.decide(a, now)
	if moved != 0 || a.Mode == sluice.Reset {
		s.keep(r, e, b, now, d.ResetAfter)
	}
	return d, nil
}

// takeUnseen decides for a subject that had no entry a moment ago.
func (s *Buckets) takeUnseen(r *rule[*bucket], t *table[*bucket], hash uint64, subject string, a *sluice.Ask, now int64) (sluice.Decision, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(hash, subject); e != nil {
		e.mu.Lock()
		if e.expires >= 0 {
			defer e.mu.Unlock()
			return s.takeLocked(r, e, a, now)
		}
		e.mu.Unlock()
	}
	if !s.room(t, now) {
		return s.takeOverflow(r, a, now)
	}
	var b *bucket
	if a.Mode != sluice.Reset {
		b = s.unseen(r, now)
	}
	if b == nil {
		b = new(bucket)
	}
	if err := b.shape(a.Strategy, s.shareNow(), now); err != nil {
		return sluice.Decision{}, err
	}
	d, moved := b.decide(a, now)
	if moved == 0 && a.Mode != sluice.Reset {
		return d, nil
	}
	e := s.add(t, hash, subject)
	if e == nil { // another call took the last room
		return s.takeOverflow(r, a, now)
	}
	s.keep(r, e, b, now, d.ResetAfter)
	e.mu.Unlock()
	return d, nil
}

// takeOverflow decides for a subject that found no room, on the bucket that all such subjects of its rule share. The
// subject's table is locked.
func (s *Buckets) takeOverflow(r *rule[*bucket], a *sluice.Ask, now int64) (sluice.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.overflows.Add(1)
	b := r.overflow
	if b == nil {
		b = new(bucket)
	}
	if err := b.shape(a.Strategy, s.shareNow(), now); err != nil {
		return sluice.Decision{}, err
	}
	d, moved := b.decide(a, now) // a Reset moves nothing: one subject's must not free the others
	if moved != 0 {
		r.keepOverflow(b, now, d.ResetAfter)
	}
	return d, nil
}

// wholeBurst is the most units that a limit lets pass at one instant: a window's Count.
func wholeBurst(l algorithm.Limit) int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Count
}
