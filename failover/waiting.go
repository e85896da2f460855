package failover

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
)

const (
	mostWaiting = 1024            // asks that wait for their store
	sendTime    = 1 * time.Second // of one of them, once it goes out
)

// waiting holds the Settles that came while their store was away, in order. Each is sent at most once: one
// whose reply is lost may have been executed, and giving back twice would widen the limit.
type waiting struct {
	some atomic.Bool // so that a call that finds none takes no lock

	mu      sync.Mutex
	queue   []waiter
	sending bool
}

type waiter struct {
	store sluice.Store
	ask   sluice.Ask
}

// add puts an ask at the end. Where there are too many, the first is dropped: what it would give back stays charged.
func (w *waiting) add(s sluice.Store, a sluice.Ask) {
	a.Key.Rule, a.Key.Subject = strings.Clone(a.Key.Rule), strings.Clone(a.Key.Subject) // the caller's may be parts of more
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == mostWaiting {
		w.queue = w.queue[1:]
	}
	w.queue = append(w.queue, waiter{s, a})
	w.some.Store(true)
}

// begin tells whether there is something to send and nobody sends it yet; who begins calls next until it is false.
func (w *waiting) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sending || len(w.queue) == 0 {
		return false
	}
	w.sending = true
	return true
}

func (w *waiting) next() (waiter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue = nil
		w.sending = false
		w.some.Store(false)
		return waiter{}, false
	}
	next := w.queue[0]
	w.queue = w.queue[1:]
	return next, true
}

// end puts back one that was not sent.
func (w *waiting) end(unsent waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending = false
	if len(w.queue) < mostWaiting {
		w.queue = append([]waiter{unsent}, w.queue...)
	}
}

// send sends what waits on a goroutine of the breaker's, after the primary has answered a call.
func (b *Breaker) send() {
	if !b.waiting.some.Load() || !b.waiting.begin() {
		return
	}
	if !b.run(b.sendAll) {
		b.waiting.stop()
	}
}

func (w *waiting) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending = false
}

func (b *Breaker) sendAll() {
	for b.ctx.Err() == nil {
		next, ok := b.waiting.next()
		if !ok {
			return
		}
		if !b.sendOne(next) {
			b.waiting.end(next)
			return
		}
	}
	b.waiting.stop()
}

// sendOne is false if the breaker has opened again.
func (b *Breaker) sendOne(w waiter) (asked bool) {
	ctx, cancel := context.WithTimeout(b.ctx, sendTime)
	defer cancel()
	defer func() {
		if recover() != nil { // no caller is there to see it, and the process is not ours to end
			asked = true
		}
	}()
	asked, err := b.call(ctx, func() error {
		_, err := w.store.Take(ctx, w.ask)
		return err
	})
	if asked && err != nil {
		b.noteUnanswered(w.store, w.ask)
	}
	return asked
}
