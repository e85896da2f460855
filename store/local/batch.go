package local

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
)

// batch is the values of several asks, locked.
type batch[V any] struct {
	keys   *keys[V]
	places []*place[V] // one per ask; asks on the same value share one
	tables []*table[V] // locked
	rules  []*rule[V]  // locked
}

// place is one value of a batch.
type place[V any] struct {
	rule     *rule[V]
	subject  string // bounded
	hash     uint64
	entry    *entry[V] // locked; nil: none yet
	claimed  bool      // has room for a new entry
	overflow bool      // the value is the rule's overflow value
	value    V
	last     int // number of the last ask that changed the value, from 1; 0: none
}

func (p *place[V]) table() *table[V] { return &p.rule.tables[tableNo(p.hash)] }

// open locks the tables and the entries of all asks, and the rules whose overflow value is needed: in an order that all
// batches keep, so that none waits for another in a ring.
func (k *keys[V]) open(asks []sluice.Ask, now int64) *batch[V] {
	b := &batch[V]{keys: k, places: make([]*place[V], len(asks))}
	var distinct []*place[V]
	for i := range asks {
		r, subject := k.rule(&asks[i]), bounded(asks[i].Key.Subject)
		at := slices.IndexFunc(distinct, func(p *place[V]) bool { return p.rule == r && p.subject == subject })
		if at < 0 {
			at = len(distinct)
			distinct = append(distinct, &place[V]{rule: r, subject: subject, hash: k.hash(subject)})
		}
		b.places[i] = distinct[at]
	}
	slices.SortFunc(distinct, func(p, q *place[V]) int {
		return cmp.Or(cmp.Compare(p.rule.no, q.rule.no), cmp.Compare(tableNo(p.hash), tableNo(q.hash)))
	})
	for i, p := range distinct {
		if i == 0 || distinct[i-1].table() != p.table() {
			p.table().mu.Lock()
			b.tables = append(b.tables, p.table())
		}
	}
	if k.kept.Load()+int64(len(distinct)) > k.kept.most { // before any entry is relied on: it may be dropped
		for _, t := range b.tables {
			k.makeRoom(t, now)
		}
	}
	for _, p := range distinct {
		if e := p.table().find(p.hash, p.subject); e != nil {
			e.mu.Lock()
			if e.expires >= 0 {
				p.entry, p.value = e, e.value
				continue
			}
			e.mu.Unlock()
		}
		p.claimed = k.kept.claim()
		p.overflow = !p.claimed
		if p.overflow || now < p.rule.ends.Load() { // as keys.unseen
			b.lock(p.rule)
			if p.value = p.rule.overflow; !p.overflow {
				p.value = k.copyOf(p.value, now)
			}
		}
	}
	for i, p := range b.places { // asks of one rule that found no room stand on one value
		if p.overflow {
			b.places[i] = distinct[slices.IndexFunc(distinct, func(q *place[V]) bool { return q.overflow && q.rule == p.rule })]
		}
	}
	return b
}

// lock locks a rule, after those of a lower number.
func (b *batch[V]) lock(r *rule[V]) {
	if n := len(b.rules); n == 0 || b.rules[n-1] != r {
		r.mu.Lock()
		b.rules = append(b.rules, r)
	}
}

// commit keeps the values that were changed. left is how long the value of ask i then takes to be as good as new.
func (b *batch[V]) commit(now int64, left func(i int) time.Duration) {
	for i, p := range b.places {
		switch {
		case p.last != i+1: // a place that several asks share is kept once
			continue
		case p.overflow:
			p.rule.keepOverflow(p.value, now, left(i))
			continue
		}
		if p.entry == nil {
			p.entry = p.table().add(p.hash, p.subject)
			p.entry.mu.Lock()
			p.claimed = false
		}
		b.keys.keep(p.rule, p.entry, p.value, now, left(i))
	}
}

func (b *batch[V]) close() {
	for _, p := range b.places {
		if p.overflow {
			b.keys.overflows.Add(1)
		}
		if p.claimed {
			p.claimed = false
			b.keys.kept.Add(-1)
		}
		if p.entry != nil {
			p.entry.mu.Unlock()
			p.entry = nil
		}
	}
	for _, r := range b.rules {
		r.mu.Unlock()
	}
	for _, t := range b.tables {
		t.mu.Unlock()
	}
}
