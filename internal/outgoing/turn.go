// Package outgoing makes calls to others wait for their turn: of a limiter, and of what the other side asks for.
package outgoing

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice"
)

// Turn is where calls to one other side wait. It is safe for concurrent use, and must not be copied once it is used.
type Turn struct {
	Limiter *sluice.Limiter
	Subject string // of the limiter

	pause pause
}

// Pause lets no call out for d from now on, if no longer pause stands. Those that wait for the limiter are interrupted,
// uncharged, and wait again when it is over.
func (t *Turn) Pause(d time.Duration) { t.pause.begin(d) }

// Wait returns nil once a call may go out, which is then charged one unit. Its errors are those of [sluice.Limiter.Wait],
// and context.DeadlineExceeded, at once, where a pause outlasts the deadline.
func (t *Turn) Wait(ctx context.Context) error {
	for {
		left, calm := t.pause.left()
		if left <= 0 {
			err := t.take(ctx, calm)
			if errors.Is(err, context.Canceled) && calm.Err() != nil && ctx.Err() == nil {
				continue // a pause has begun
			}
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= left {
			return context.DeadlineExceeded
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-calm.Done():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// take waits for the limiter while there is calm. A call that a pause interrupts is charged nothing, so that those who
// wait do not gather units meanwhile, and go out all at once when it ends.
func (t *Turn) take(ctx, calm context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(calm, cancel)()
	return t.Limiter.Wait(ctx, t.Subject, 1)
}
