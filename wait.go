package sluice

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// waiting holds the queues of Wait, one a subject that has callers waiting.
type waiting struct {
	mu     sync.Mutex
	queues map[string]*queue
}

// queue is the callers waiting on one subject in order of arrival. The first asks the store; the others sleep.
type queue struct {
	callers list.List // of *caller
	next    time.Time // when the first will ask again; zero while it asks
}

// caller is one that waits for its turn.
type caller struct {
	ctx  context.Context
	turn chan error // is sent nil when the caller has become the first, or why it can't
}

// Wait charges n units to subject as soon as they fit, waiting as long as that takes, and holds for the Delay of a
// leaky bucket. It returns nil once n units are charged and the caller may act.
//
// It returns ErrNever if n is above the burst, and context.DeadlineExceeded if the wait would last until ctx's
// deadline or longer: both at once. Whatever the error, nothing is charged, unless the store failed.
//
// Callers waiting on one subject in one process, by this limiter or its With siblings, are served in order behind a
// single ask, so that none starves and the store sees one question a wait.
func (l *Limiter) Wait(ctx context.Context, subject string, n int64) error {
	a := l.Ask(subject, n)
	if err := a.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, d := a.Strategy.Take(algorithm.State{}, 0, n); d.RetryAfter == Never {
		return fmt.Errorf("%w: %d of at most %d", ErrNever, n, d.Limit)
	}

	turn, leave, err := l.waiting.join(ctx, subject)
	if err != nil {
		return err
	}
	defer leave()
	select {
	case err = <-turn:
	case <-ctx.Done():
	}
	for {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		d, err := l.store.Take(ctx, a)
		if err != nil {
			return err
		}
		if d.Allowed {
			if late(ctx, d.Delay) {
				return l.undo(ctx, subject, d, context.DeadlineExceeded)
			}
			leave() // the next in line may ask while this one holds
			if err := d.Hold(ctx); err != nil {
				return l.undo(ctx, subject, d, err)
			}
			return nil
		}
		if d.RetryAfter == Never {
			return fmt.Errorf("%w: %d of at most %d", ErrNever, n, d.Limit)
		}
		if late(ctx, d.RetryAfter) {
			return context.DeadlineExceeded
		}
		l.waiting.announce(subject, time.Now().Add(d.RetryAfter))
		t := time.NewTimer(d.RetryAfter)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// undo gives back what d charged to a caller that will not act, and returns why it will not.
func (l *Limiter) undo(ctx context.Context, subject string, d Decision, why error) error {
	if err := l.Refund(ctx, subject, d); err != nil {
		return fmt.Errorf("%w; giving back what was charged: %w", why, err)
	}
	return why
}

// late tells whether ctx has ended when wait is over.
func late(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= wait
}

// join puts a caller at the end of a subject's queue. It is refused at once if the first in line is known to wait
// longer than the caller can, and told so on turn if that becomes known later. turn is sent nil when the caller is the
// first; leave passes the turn on and may be called twice.
func (w *waiting) join(ctx context.Context, subject string) (turn <-chan error, leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[subject]
	if q == nil {
		q = &queue{}
		if w.queues == nil {
			w.queues = make(map[string]*queue)
		}
		w.queues[subject] = q
	}
	if !q.next.IsZero() && late(ctx, time.Until(q.next)) {
		return nil, nil, context.DeadlineExceeded
	}
	c := &caller{ctx, make(chan error, 1)}
	place := q.callers.PushBack(c)
	if q.callers.Front() == place {
		c.turn <- nil
	}
	var once sync.Once
	return c.turn, func() { once.Do(func() { w.leave(subject, q, place) }) }, nil
}

func (w *waiting) leave(subject string, q *queue, place *list.Element) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wasFirst := q.callers.Front() == place
	q.callers.Remove(place)
	switch {
	case w.queues[subject] != q: // the caller was sent away, and the others have gone since
	case q.callers.Len() == 0:
		delete(w.queues, subject)
	case wasFirst:
		q.next = time.Time{}
		q.callers.Front().Value.(*caller).turn <- nil
	}
}

// announce says when the first in line will ask again, and sends away those who can't wait that long.
func (w *waiting) announce(subject string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[subject]
	q.next = at
	for place := q.callers.Front().Next(); place != nil; {
		next := place.Next()
		if c := place.Value.(*caller); late(c.ctx, time.Until(at)) {
			c.turn <- context.DeadlineExceeded
			q.callers.Remove(place)
		}
		place = next
	}
}
