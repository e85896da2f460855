package failover

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice"
)

// patience is how long a call must have waited for its caller's deadline to count as the store's failure.
const patience = 10 * time.Millisecond

// call runs f, which asks a primary, if the breaker lets it; asked is false where not. f returns errRemembered for an
// answer that says nothing of the primary's health; call's error is nil then. A panic of f, or a Goexit,
// passes through after the call has given its place as a probe back.
func (b *Breaker) call(ctx context.Context, f func() error) (asked bool, err error) {
	defer b.changes.deliver()
	var start time.Time
	deadline, limited := ctx.Deadline()
	if limited {
		start = time.Now()
	}
	defer func() {
		if r := recover(); r != nil && r != exited {
			panic(r)
		}
	}()
	_, _ = b.breaker.Execute(func() (struct{}, error) {
		asked = true
		ended := false
		defer func() {
			if ended {
				return
			}
			if r := recover(); r != nil {
				panic(r)
			}
			panic(exited) // a Goexit, which gobreaker does not see; it goes on once this is recovered
		}()
		err = f()
		ended = true
		switch err {
		case nil:
			return struct{}{}, nil
		case errRemembered:
			err = nil
			return struct{}{}, errNeutral
		}
		return struct{}{}, outcome(ctx, err, limited, start, deadline)
	})
	return asked, err
}

// exited stands for a Goexit on its way through gobreaker.
var exited any = new(struct{ _ byte })

// outcome says how a failed call counts.
func outcome(ctx context.Context, err error, limited bool, start, deadline time.Time) error {
	switch {
	case cancelled(ctx):
		return errNeutral
	case isRepeated(err):
		return errNeutral
	case errors.Is(err, sluice.ErrState), errors.Is(err, sluice.ErrCost), err == errBusy:
		return errNeutral
	case limited:
		now := time.Now()
		if !now.Before(deadline) && now.Sub(start) < patience {
			return errNeutral
		}
	}
	return errFailed
}

// isRepeated tells whether an error is one that another caller has been told already. A store says so of a failure that
// many calls share, such as that of a batch, by a method of its error: else one lost packet would count as a row of them.
func isRepeated(err error) bool {
	var r interface{ Repeated() bool }
	return errors.As(err, &r) && r.Repeated()
}

// cancelled tells whether the caller has gone: not whether its deadline has passed.
func cancelled(ctx context.Context) bool {
	err := ctx.Err()
	return err != nil && !errors.Is(err, context.DeadlineExceeded)
}
