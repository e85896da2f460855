package local

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
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
	clock     clock
	share     func() float64
	seed      maphash.Seed
	keys      room
	overflows atomic.Int64 // decisions on a shared bucket
	rules     atomic.Pointer[[]*bucketRule]
	adding    sync.Mutex // serializes writers of rules
	parts     [shards]bucketPart

	sweeps sweeps
}

// NewBuckets returns an empty store.
func NewBuckets(o BucketsOptions) *Buckets {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Share == nil {
		o.Share = func() float64 { return 1 }
	}
	s := &Buckets{clock: newClock(o.Clock), keys: room{most: int64(o.MaxKeys)}, share: o.Share, seed: maphash.MakeSeed()}
	s.rules.Store(new([]*bucketRule))
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

	k := bucketKey{s.rule(&a), bounded(a.Key.Subject)}
	p := &s.parts[s.partNo(k.subject)]
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.takeLocked(p, k, &a, s.shareNow(), now)
}

// takeLocked decides with the key's part locked.
func (s *Buckets) takeLocked(p *bucketPart, k bucketKey, a *sluice.Ask, share float64, now int64) (sluice.Decision, error) {
	b := p.buckets[k]
	unseen := b == nil
	if unseen {
		if !s.room(p, now) {
			return s.takeOverflow(k.rule, a, share, now)
		}
		b = k.rule.unseen(now)
	}
	if a.Mode == sluice.Reset { // a new bucket takes its place
		delete(p.buckets, k)
		b, unseen = new(bucket), true
	}
	if err := b.shape(a.Strategy, share, now); err != nil {
		if unseen {
			s.keys.Add(-1)
		}
		return sluice.Decision{}, err
	}
	d, moved := b.decide(a, now)
	switch {
	case moved != 0 || a.Mode == sluice.Reset:
		s.keep(p, k, b, now, d.ResetAfter, unseen)
	case unseen:
		s.keys.Add(-1)
	}
	return d, nil
}

// takeOverflow decides for a subject that found no room, on the bucket that all such subjects of its rule share.
func (s *Buckets) takeOverflow(r *bucketRule, a *sluice.Ask, share float64, now int64) (sluice.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.overflows.Add(1)
	if err := r.overflow.shape(a.Strategy, share, now); err != nil {
		return sluice.Decision{}, err
	}
	d, moved := r.overflow.decide(a, now) // a Reset moves nothing: one subject's must not free the others
	if moved != 0 {
		r.ends.Store(now + micros(d.ResetAfter))
	}
	return d, nil
}

// Len is how many buckets are kept, shared ones included: at most MaxKeys, and one for each rule and algorithm. (A
// call that is running may count as a key.)
func (s *Buckets) Len() int {
	n, now := int(s.keys.Load()), s.clock.now()
	for _, r := range *s.rules.Load() {
		if now < r.ends.Load() {
			n++
		}
	}
	return n
}

// Overflows is how many decisions were made on a shared bucket for want of room since NewBuckets. One that grows means
// that MaxKeys is too small, or that someone floods the store with subjects.
func (s *Buckets) Overflows() int64 { return s.overflows.Load() }

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// wholeBurst is the most units that a limit lets pass at one instant: a window's Count.
func wholeBurst(l algorithm.Limit) int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Count
}
