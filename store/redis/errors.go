package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
)

// errAbandoned is the answer while too many commands hang.
var errAbandoned = fmt.Errorf("%w: %d commands hang without an answer", sluice.ErrUnavailable, maxAbandoned)

// classify turns an error of the client into one of ours, in one place:
//
//   - a wrong type on the key: ErrState, which says nothing of the server's health;
//   - the caller's cancellation: context.Canceled alone;
//   - a deadline, the caller's or ours: ErrUnavailable and context.DeadlineExceeded;
//   - anything else, from a refused connection to LOADING, READONLY, OOM or NOAUTH: ErrUnavailable.
//
// The cause is kept as text: were it wrapped, a cancellation inside the client could be taken for the caller's.
func classify(ctx context.Context, err error) error {
	var server goredis.Error
	switch {
	case err == nil:
		return nil
	case isRepeated(err):
		if err = classify(ctx, errors.Unwrap(err)); err == context.Canceled {
			return err
		}
		return repeated{err}
	case errors.Is(err, sluice.ErrUnavailable), errors.Is(err, sluice.ErrState): // ours already
		return err
	case errors.As(err, &server):
		if strings.Contains(server.Error(), "WRONGTYPE") {
			return fmt.Errorf("%w: %v", sluice.ErrState, err)
		}
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case timeout(err):
		return fmt.Errorf("%w: %w: %v", sluice.ErrUnavailable, context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%w: %v", sluice.ErrUnavailable, err)
}

func timeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &n) && n.Timeout() || errors.Is(err, goredis.ErrPoolTimeout)
}

// noScript tells whether the server does not know an EVALSHA's script. It has then executed nothing.
func noScript(err error) bool {
	return err != nil && (errors.Is(err, goredis.ErrNoScript) || goredis.HasErrorPrefix(err, "NOSCRIPT"))
}

// crossSlot tells whether the server is one of several, and the keys lie on more than it.
func crossSlot(err error) bool {
	return err != nil && (goredis.HasErrorPrefix(err, "CROSSSLOT") || strings.Contains(err.Error(), "CROSSSLOT"))
}

// tryAgain tells whether some of the keys are just being moved to another node.
func tryAgain(err error) bool { return err != nil && goredis.IsTryAgainError(err) }

func isRepeated(err error) bool {
	_, ok := err.(repeated)
	return ok
}
