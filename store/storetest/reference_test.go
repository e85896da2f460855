package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// reference is the smallest store that keeps the contract. Broken stores replace one of its parts.
type reference struct {
	mu     sync.Mutex
	states map[id]algorithm.State

	source sluice.Source
	now    func() int64
	check  func(a sluice.Ask) error
	id     func(a sluice.Ask) id
	decide func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision)
	done   func(ctx context.Context) error
	store  func(id id, old, next algorithm.State)
	all    func(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error)
}

// id names a state.
type id struct {
	key    sluice.Key
	script string
	more   string
}

func newReference(clock func() time.Time) *reference {
	r := &reference{states: map[id]algorithm.State{}, source: sluice.Local}
	r.now = func() int64 { return algorithm.Clock(clock()) }
	r.check = func(a sluice.Ask) error { return a.Check() }
	r.id = func(a sluice.Ask) id {
		script, _ := a.Strategy.Lua()
		return id{key: a.Key, script: script.Name}
	}
	r.decide = func(a sluice.Ask, s algorithm.State, now int64) (algorithm.State, sluice.Decision) {
		return a.Decide(s, now)
	}
	r.done = context.Context.Err
	r.store = func(id id, old, next algorithm.State) {
		if next == (algorithm.State{}) {
			delete(r.states, id)
		} else {
			r.states[id] = next
		}
	}
	r.all = r.allOrNone
	return r
}

func (r *reference) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if err := r.check(a); err != nil {
		return sluice.Decision{}, err
	}
	if err := r.done(ctx); err != nil {
		return sluice.Decision{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.takeLocked(a, r.now())
	return d, nil
}

func (r *reference) takeLocked(a sluice.Ask, now int64) sluice.Decision {
	id := r.id(a)
	old := r.states[id]
	next, d := r.decide(a, old, now)
	r.store(id, old, next)
	d.Source = r.source
	return d
}

func (r *reference) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	return r.all(ctx, asks)
}

func (r *reference) allOrNone(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	if err := r.done(ctx); err != nil {
		return sluice.Verdict{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	before := map[id]algorithm.State{}
	each := make([]sluice.Decision, len(asks))
	for i, a := range asks {
		if _, seen := before[r.id(a)]; !seen {
			before[r.id(a)] = r.states[r.id(a)]
		}
		each[i] = r.takeLocked(a, now)
		if each[i].Allowed || a.Mode == sluice.UpTo {
			continue
		}
		for id, s := range before {
			r.store(id, r.states[id], s)
		}
		for j, a := range asks[:i+1] {
			_, d := a.Strategy.Take(r.states[r.id(a)], now, 0)
			each[j].Remaining, each[j].ResetAfter = d.Remaining, d.ResetAfter
		}
		return sluice.Refuse(asks, each, i), nil
	}
	return sluice.Sum(each), nil
}

// Len is how many states are kept.
func (r *reference) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.states)
}
