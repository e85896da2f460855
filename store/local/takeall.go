package local

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// TakeAll decides asks together, all or none, atomically: it holds the shards of all their keys while it decides.
func (s *Store) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
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
	for _, p := range b.places {
		if p.overflow {
			s.overflows.Add(1)
		}
	}
	kept := make([]*algorithm.State, len(asks))
	for i, p := range b.places {
		kept[i] = &p.next
	}
	v := sluice.DecideAll(asks, kept, now, sluice.Local)
	if v.Refused < 0 {
		for i, a := range asks {
			if v.Each[i].Charged > 0 || a.Mode == sluice.Settle {
				b.places[i].changed = a.Strategy
			}
		}
		b.commit(now)
	}
	return v, nil
}

// batch is the states of several asks, locked.
type batch struct {
	store  *Store
	places []*place // one per ask; asks on the same state share one
	shards []*shard // locked
	rules  []*rule  // locked
}

// place is one state of a batch.
type place struct {
	rule     *rule
	subject  string
	shardNo  uint64
	entry    *entry          // nil: not kept yet
	overflow bool            // the state is the rule's overflow state
	claimed  bool            // room for a new entry
	changed  sluice.Strategy // of the last ask that wrote it
	old      algorithm.State
	next     algorithm.State // as the asks leave it
}

func (p *place) shard() *shard { return &p.rule.shards[p.shardNo] }

// open locks the shards of all asks, then the rules whose overflow state is needed, each in an order that all batches
// keep, so that none waits for another in a ring.
func (s *Store) open(asks []sluice.Ask, now int64) *batch {
	b := &batch{store: s, places: make([]*place, len(asks))}
	var distinct []*place
	for i := range asks {
		a := &asks[i]
		r, subject := s.rule(a), bounded(a.Key.Subject)
		at := slices.IndexFunc(distinct, func(p *place) bool { return p.rule == r && p.subject == subject })
		if at < 0 {
			at = len(distinct)
			distinct = append(distinct, &place{rule: r, subject: subject, shardNo: s.shardNo(subject)})
		}
		b.places[i] = distinct[at]
	}
	slices.SortFunc(distinct, func(p, q *place) int {
		return cmp.Or(cmp.Compare(p.rule.no, q.rule.no), cmp.Compare(p.shardNo, q.shardNo))
	})
	for i, p := range distinct {
		if i == 0 || distinct[i-1].shard() != p.shard() {
			p.shard().mu.Lock()
			b.shards = append(b.shards, p.shard())
		}
	}
	if s.keys.Load()+int64(len(distinct)) > s.keys.most { // before any entry is held on to: it may be dropped
		for _, sh := range b.shards {
			s.makeRoom(sh, now)
		}
	}
	for _, p := range distinct {
		if p.entry = p.shard().entries[p.subject]; p.entry != nil {
			p.old = p.entry.state
		} else {
			p.claimed = s.keys.claim()
			p.overflow = !p.claimed
			if p.overflow || now < p.rule.ends.Load() { // as rule.unseen
				b.lock(p.rule)
				p.old = p.rule.overflow
			}
		}
		p.next = p.old
	}
	for i, p := range b.places { // asks of one rule that found no room stand on one state
		if p.overflow {
			b.places[i] = distinct[slices.IndexFunc(distinct, func(q *place) bool { return q.overflow && q.rule == p.rule })]
		}
	}
	return b
}

// lock locks a rule, after those of a lower number.
func (b *batch) lock(r *rule) {
	if n := len(b.rules); n == 0 || b.rules[n-1] != r {
		r.mu.Lock()
		b.rules = append(b.rules, r)
	}
}

func (b *batch) commit(now int64) {
	for _, p := range b.places {
		if p.next == p.old {
			continue
		}
		_, left := p.changed.Take(p.next, now, 0)
		if p.overflow {
			p.rule.keep(p.next, now, left.ResetAfter)
		} else {
			b.store.put(p.rule, p.shard(), p.subject, p.entry, p.next, now, left.ResetAfter)
			p.claimed = false
		}
		p.old = p.next // a place that several asks share is kept once
	}
}

func (b *batch) close() {
	for _, p := range b.places {
		if p.claimed {
			p.claimed = false
			b.store.keys.Add(-1)
		}
	}
	for _, r := range b.rules {
		r.mu.Unlock()
	}
	for _, sh := range b.shards {
		sh.mu.Unlock()
	}
}
