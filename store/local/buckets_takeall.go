package local

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-go/sluice"
)

// TakeAll decides asks together, all or none, atomically: it holds the parts of all their keys while it decides.
func (s *Buckets) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	if ctx.Err() != nil {
		return sluice.Verdict{}, over(ctx)
	}
	if len(asks) == 0 {
		return sluice.Sum(nil), nil
	}
	now := s.clock.now()
	s.sweep(now)
	b := s.open(asks, now)
	defer b.close()
	return b.take(asks, s.shareNow(), now)
}

// bucketBatch is the buckets of several asks, locked.
type bucketBatch struct {
	store  *Buckets
	places []*bucketPlace // one per ask; asks on the same bucket share one
	parts  []*bucketPart  // locked
	rules  []*bucketRule  // locked
}

// bucketPlace is one bucket of a batch.
type bucketPlace struct {
	key      bucketKey
	partNo   uint64
	bucket   *bucket
	unseen   bool // room is claimed for it
	overflow bool // the bucket is the rule's shared one
	changed  int  // number of the last ask that moved it, from 1; 0: none
}

// open locks the parts of all asks, then the rules whose shared bucket is needed, each in an order that all batches
// keep, so that none waits for another in a ring.
func (s *Buckets) open(asks []sluice.Ask, now int64) *bucketBatch {
	b := &bucketBatch{store: s, places: make([]*bucketPlace, len(asks))}
	var distinct []*bucketPlace
	for i := range asks {
		k := bucketKey{s.rule(&asks[i]), bounded(asks[i].Key.Subject)}
		at := slices.IndexFunc(distinct, func(p *bucketPlace) bool { return p.key == k })
		if at < 0 {
			at = len(distinct)
			distinct = append(distinct, &bucketPlace{key: k, partNo: s.partNo(k.subject)})
		}
		b.places[i] = distinct[at]
	}
	slices.SortFunc(distinct, func(p, q *bucketPlace) int { return cmp.Compare(p.partNo, q.partNo) })
	for i, p := range distinct {
		if i == 0 || distinct[i-1].partNo != p.partNo {
			part := &s.parts[p.partNo]
			part.mu.Lock()
			b.parts = append(b.parts, part)
		}
	}
	if s.keys.Load()+int64(len(distinct)) > s.keys.most { // before any bucket is held on to: it may be dropped
		for _, part := range b.parts {
			s.makeRoom(part, now)
		}
	}
	slices.SortFunc(distinct, func(p, q *bucketPlace) int { return cmp.Compare(p.key.rule.no, q.key.rule.no) })
	for _, p := range distinct {
		if p.bucket = s.parts[p.partNo].buckets[p.key]; p.bucket != nil {
			continue
		}
		p.unseen = s.keys.claim()
		p.overflow = !p.unseen
		r := p.key.rule
		if p.overflow || now < r.ends.Load() { // as bucketRule.unseen
			b.lock(r)
		}
		switch {
		case p.overflow:
			p.bucket = &r.overflow
			s.overflows.Add(1)
		case now < r.ends.Load():
			p.bucket = r.overflow.copy(now)
		default:
			p.bucket = new(bucket)
		}
	}
	return b
}

// lock locks a rule, after those of a lower number.
func (b *bucketBatch) lock(r *bucketRule) {
	if n := len(b.rules); n == 0 || b.rules[n-1] != r {
		r.mu.Lock()
		b.rules = append(b.rules, r)
	}
}

// take decides all asks in order, and takes back what it took if one is denied.
func (b *bucketBatch) take(asks []sluice.Ask, share float64, now int64) (sluice.Verdict, error) {
	each, moved := make([]sluice.Decision, len(asks)), make([]int64, len(asks))
	for i := range asks {
		a := &asks[i]
		if err := b.places[i].bucket.shape(a.Strategy, share, now); err != nil {
			b.undo(i, moved, now)
			return sluice.Verdict{}, err
		}
		each[i], moved[i] = b.places[i].bucket.decide(a, now)
		if each[i].Allowed || (a.Mode != sluice.Charge && a.Mode != sluice.Peek) {
			continue
		}
		b.undo(i, moved, now)
		for j := range i + 1 { // as they stand with nothing charged
			as := b.look(j, asks, share, now)
			each[j].Remaining, each[j].ResetAfter = as.Remaining, as.ResetAfter
		}
		v := sluice.Refuse(asks, each, i)
		for j := i + 1; j < len(asks); j++ {
			v.Each[j].Limit = b.look(j, asks, share, now).Limit
		}
		return v, nil
	}
	for i, p := range b.places {
		if moved[i] != 0 {
			p.changed = i + 1
		}
	}
	for i, p := range b.places {
		if p.changed != i+1 {
			continue
		}
		left := b.look(i, asks, share, now).ResetAfter
		if p.overflow {
			p.key.rule.ends.Store(now + micros(left))
			continue
		}
		b.store.keep(&b.store.parts[p.partNo], p.key, p.bucket, now, left, p.unseen)
		p.unseen = false
	}
	return sluice.Sum(each), nil
}

// look is how the bucket of ask i stands, for that ask's strategy.
func (b *bucketBatch) look(i int, asks []sluice.Ask, share float64, now int64) sluice.Decision {
	a := sluice.Ask{Strategy: asks[i].Strategy, Mode: sluice.Peek}
	if b.places[i].bucket.shape(a.Strategy, share, now) != nil {
		return sluice.Decision{}
	}
	d, _ := b.places[i].bucket.decide(&a, now)
	return d
}

// undo takes back what the first n asks moved, last first.
func (b *bucketBatch) undo(n int, moved []int64, now int64) {
	for i := n - 1; i >= 0; i-- {
		b.places[i].bucket.undo(moved[i], now)
	}
}

func (b *bucketBatch) close() {
	for _, p := range b.places {
		if p.unseen {
			p.unseen = false
			b.store.keys.Add(-1)
		}
	}
	for _, r := range b.rules {
		r.mu.Unlock()
	}
	for _, p := range b.parts {
		p.mu.Unlock()
	}
}
