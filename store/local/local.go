// Package local keeps states in process: [Store] runs the strategies themselves, exactly, for programs that need no
// shared budget and for tests with a clock of their own.
package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// Options are the choices of a Store. The zero Options are good for most programs.
type Options struct {
	Clock   func() time.Time // nil: the system's. Called on every decision, from many goroutines
	MaxKeys int              // most keys kept; 0: 1<<20. See Store
}

// Store decides in process, with the strategies' own arithmetic. It is safe for concurrent use, starts no goroutine
// and needs no closing. A decision allocates nothing, unless its subject is new or longer than 128 bytes.
//
// Memory is bounded by MaxKeys, and no eviction hands anyone a fresh burst: a key is dropped only once its ResetAfter
// has passed, a few with each call. When MaxKeys are kept, subjects that are not among them share one state per rule
// and algorithm, until there is room again: [Store.Overflows] counts their decisions. As long as that state lasts, a
// subject that finds room starts from a copy of it, since it may have been charged there.
type Store struct {
	keys[algorithm.State]
}

// New returns an empty store.
func New(o Options) *Store {
	s := new(Store)
	s.init(o.Clock, o.MaxKeys, func(overflow algorithm.State, _ int64) algorithm.State { return overflow })
	return s
}

// Take decides one ask. It fails only on an Ask that is wrong in itself (ErrCost), or where ctx is done already: with
// context.Canceled, or with ErrUnavailable and context.DeadlineExceeded.
func (s *Store) Take(ctx context.Context, a sluice.Ask) (d sluice.Decision, err error) {
	usual := a.Mode == sluice.Charge && a.N >= 0 && a.Strategy != nil
	if !usual {
		if err := a.Check(); err != nil {
			return d, err
		}
	}
	if ctx.Err() != nil {
		return d, over(ctx)
	}
	now := s.clock.now()
	if s.sweeps.due(now) {
		s.sweep(now)
	}

	r, subject := s.rule(&a), a.Key.Subject
	if len(subject) > longSubject {
		subject = digest(subject)
	}
	hash := s.hash(subject)
	t := &r.tables[tableNo(hash)]
	e := t.guess(hash)
	if e == nil {
		return s.takeUnseen(r, t, hash, subject, &a, now), nil
	}
	e.mu.Lock()
	if !e.is(subject) {
		e.mu.Unlock()
		return s.takeUnseen(r, t, hash, subject, &a, now), nil
	}
	st, ok := a.Strategy.(inPlace)
	if !ok || !usual {
		d = s.decide(r, e, &a, now)
		e.mu.Unlock()
		return d, nil
	}
	d = st.TakeIn(&e.value, now, a.N)
	if d.Charged > 0 {
		s.touch(r, e, now, d.ResetAfter)
	}
	e.mu.Unlock()
	d.Source = sluice.Local
	return d, nil
}

// inPlace is a strategy that runs Take on a state where it lies, and answers Charged 0 where it leaves that as it was.
// Copies of states are a tenth of the time of a decision.
type inPlace interface {
	TakeIn(s *algorithm.State, now, n int64) algorithm.Decision
}

// decide decides any ask on a locked entry that is not dead.
func (s *Store) decide(r *rule[algorithm.State], e *entry[algorithm.State], a *sluice.Ask, now int64) sluice.Decision {
	next, d := a.Decide(e.value, now)
	if next != e.value {
		s.keep(r, e, next, now, d.ResetAfter)
	}
	d.Source = sluice.Local
	return d
}

// takeUnseen decides for a subject that had no entry a moment ago.
func (s *Store) takeUnseen(r *rule[algorithm.State], t *table[algorithm.State], hash uint64, subject string, a *sluice.Ask, now int64) sluice.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(hash, subject); e != nil {
		e.mu.Lock()
		if e.expires >= 0 {
			defer e.mu.Unlock()
			return s.decide(r, e, a, now)
		}
		e.mu.Unlock()
	}
	if !s.room(t, now) {
		return s.takeOverflow(r, a, now)
	}
	old := s.unseen(r, now)
	next, d := a.Decide(old, now)
	if next != old {
		e := s.add(t, hash, subject)
		if e == nil { // another call took the last room
			return s.takeOverflow(r, a, now)
		}
		s.keep(r, e, next, now, d.ResetAfter)
		e.mu.Unlock()
	}
	d.Source = sluice.Local
	return d
}

// over is the error of a call whose context has ended.
func over(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded)
}

// takeOverflow decides for a subject that found no room, on the state that all such subjects of its rule share. The
// subject's table is locked, lest another call of the subject finds room meanwhile.
func (s *Store) takeOverflow(r *rule[algorithm.State], a *sluice.Ask, now int64) sluice.Decision {
	r.mu.Lock()
	next, d := a.Decide(r.overflow, now)
	if next != r.overflow && a.Mode != sluice.Reset { // one subject's reset must not free the others
		r.keepOverflow(next, now, d.ResetAfter)
	}
	r.mu.Unlock()
	s.overflows.Add(1)
	d.Source = sluice.Local
	return d
}
