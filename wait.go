package sluice

import (
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
	callers list.List // of chan struct{}, closed when its owner becomes the first
	next    time.Time // when the first will ask again; zero while it asks
}

// Wait charges n units to subject as soon as they fit, waiting as long as that takes, and holds for the Delay of a
// leaky bucket. It returns nil once n units are charged and the caller may act.
//
// It returns ErrNever if n is above the burst, and context.DeadlineExceeded if the wait would outlast ctx's deadline:
// both at once, with nothing charged. Callers waiting on one subject in one process, by this limiter or its With
// siblings, are served in order behind a single ask, so that none starves and the store sees one question a wait.
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

	first, leave, err := l.waiting.join(ctx, subject)
	if err != nil {
		return err
	}
	defer leave()
	select {
	case <-first:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		d, err := l.store.Take(ctx, a)
		if err != nil {
			return err
		}
		if d.Allowed {
			if late(ctx, d.Delay) {
				if err := l.Refund(ctx, subject, d); err != nil {
					return err
				}
				return context.DeadlineExceeded
			}
			leave() // the next in line may ask while this one holds
			return d.Hold(ctx)
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
			return ctx.Err()
		}
	}
}

// late tells whether ctx ends before wait is over.
func late(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < wait
}

// join puts a caller at the end of a subject's queue. It is refused at once if the first in line is known to wait
// longer than the caller can. first is closed when the caller's turn comes; leave passes the turn on and may be
// called twice.
func (w *waiting) join(ctx context.Context, subject string) (first <-chan struct{}, leave func(), err error) {
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
	turn := make(chan struct{})
	place := q.callers.PushBack(turn)
	if q.callers.Front() == place {
		close(turn)
	}
	var once sync.Once
	return turn, func() { once.Do(func() { w.leave(subject, q, place) }) }, nil
}

func (w *waiting) leave(subject string, q *queue, place *list.Element) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wasFirst := q.callers.Front() == place
	q.callers.Remove(place)
	switch {
	case q.callers.Len() == 0:
		delete(w.queues, subject)
	case wasFirst:
		q.next = time.Time{}
		close(q.callers.Front().Value.(chan struct{}))
	}
}

// announce says when the first in line will ask again.
func (w *waiting) announce(subject string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[subject]; q != nil {
		q.next = at
	}
}
