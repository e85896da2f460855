package sluice

import (
	"context"
	"fmt"
	"sync"
)

// Limiter asks one store about the subjects of one rule. It is a concrete front over the [Store] seam, safe for
// concurrent use, and holds nothing that needs closing.
type Limiter struct {
	store    Store
	strategy Strategy
	rule     string
	one      Ask      // charges one unit to no one yet
	waiting  *waiting // shared with the limiters that With makes: same keys, same queue
}

// New returns a limiter that limits each subject by st under the rule's name. Limiters with the same store and rule
// share their keys.
func New(s Store, st Strategy, rule string) *Limiter {
	return &Limiter{store: s, strategy: st, rule: rule, one: Ask{Strategy: st, Key: Key{Rule: rule}, N: 1}, waiting: &waiting{}}
}

// With returns a limiter of the same rule and keys under another limit: for plans and tiers. What a subject has spent
// counts under both, as for an edited limit.
func (l *Limiter) With(st Strategy) *Limiter {
	return &Limiter{store: l.store, strategy: st, rule: l.rule, one: Ask{Strategy: st, Key: l.one.Key, N: 1}, waiting: l.waiting}
}

// Ask returns the ask that charges n units to subject, for [TakeAll].
func (l *Limiter) Ask(subject string, n int64) Ask {
	return Ask{Strategy: l.strategy, Key: Key{Rule: l.rule, Subject: subject}, N: n}
}

// Allow charges one unit to subject if it fits. Call [Decision.Hold] before acting, if the strategy may be leaky.
// The error wraps ErrUnavailable or ErrState, or is ctx's cancellation.
func (l *Limiter) Allow(ctx context.Context, subject string) (d Decision, err error) {
	a := l.one
	a.Key.Subject = subject
	d, err = l.store.Take(ctx, a)
	return
}

// AllowN charges n units, all or none. n = 0 is allowed and charges nothing; n < 0 is ErrCost; n above the burst is
// denied with RetryAfter Never.
func (l *Limiter) AllowN(ctx context.Context, subject string, n int64) (Decision, error) {
	return l.store.Take(ctx, Ask{Strategy: l.strategy, Key: Key{l.rule, subject}, N: n})
}

// Peek answers whether n units would pass now and charges nothing: Remaining and ResetAfter as they stand.
func (l *Limiter) Peek(ctx context.Context, subject string, n int64) (Decision, error) {
	return l.take(ctx, subject, n, Peek, 0)
}

// Reset forgets subject under this rule and algorithm: its next request finds a fresh state.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	_, err := l.take(ctx, subject, 0, Reset, 0)
	return err
}

// Refund gives back to subject what d charged, once for each call: for a request that did not happen after all. A
// window that has ended gets nothing back. It also runs where ctx is already done, under the store's own timeout.
func (l *Limiter) Refund(ctx context.Context, subject string, d Decision) error {
	if d.Charged <= 0 {
		return nil
	}
	_, err := l.take(outlive(ctx), subject, -d.Charged, Settle, d.At)
	return err
}

func (l *Limiter) take(ctx context.Context, subject string, n int64, m Mode, at int64) (Decision, error) {
	a := l.Ask(subject, n)
	a.Mode, a.At = m, at
	return l.store.Take(ctx, a)
}

// outlive lets a refund be made after the request's context has ended, which is when refunds are made.
func outlive(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// Reservation is an estimate that was charged and is to be settled once, when the cost is known. One that is never
// settled stays charged. It is safe for concurrent use.
type Reservation struct {
	limiter  *Limiter
	subject  string
	decision Decision

	mu      sync.Mutex
	settled bool
	err     error
}

// Reserve charges n units as an estimate of a cost that is known only afterwards. Where they do not fit, the
// reservation is refused: Decision is the denial, and Settle and Cancel do nothing.
//
// The usual shape is: Reserve, return if Decision().Allowed is false, defer Cancel, do the work, Settle.
func (l *Limiter) Reserve(ctx context.Context, subject string, n int64) (*Reservation, error) {
	d, err := l.AllowN(ctx, subject, n)
	if err != nil {
		return nil, err
	}
	return &Reservation{limiter: l, subject: subject, decision: d, settled: !d.Allowed}, nil
}

// Decision is the answer that Reserve got.
func (r *Reservation) Decision() Decision { return r.decision }

// Settle corrects the charge to actual units, once: less is given back, more is owed, up to one burst. Later calls
// change nothing and return what the first returned, since a call whose reply was lost may have been executed.
// actual < 0 is ErrCost and settles nothing. It also runs where ctx is already done, under the store's own timeout.
func (r *Reservation) Settle(ctx context.Context, actual int64) error {
	if actual < 0 {
		return fmt.Errorf("%w: actual is %d, want at least 0", ErrCost, actual)
	}
	r.mu.Lock()
	if r.settled {
		defer r.mu.Unlock()
		return r.err
	}
	r.settled = true
	r.mu.Unlock()

	if actual == r.decision.Charged {
		return nil
	}
	_, err := r.limiter.take(outlive(ctx), r.subject, actual-r.decision.Charged, Settle, r.decision.At)
	r.mu.Lock()
	r.err = err
	r.mu.Unlock()
	return err
}

// Cancel gives the whole estimate back: Settle(0). After Settle it does nothing and returns nil, so it can be
// deferred.
func (r *Reservation) Cancel(ctx context.Context) error {
	r.mu.Lock()
	settled := r.settled
	r.mu.Unlock()
	if settled {
		return nil
	}
	return r.Settle(ctx, 0)
}
