package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/policy"
)

// turn is a mutex that nobody waits for beyond a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) end() { <-t }

// reader reads a rule file and compiles it, each on a goroutine of its own that a context ends the wait for. Neither can
// be cancelled: a read from a network's disk that hangs lasts until that is back, and thousands of rules take seconds.
type reader struct {
	path   string
	read   func(path string) text
	within time.Duration // for a read
	busy   turn          // so that at most one goroutine is left behind
}

// text reads the file. The error is ctx's end; what is wrong with the file, a hanging disk too, is in the text.
func (r *reader) text(ctx context.Context) (text, error) {
	hung := fmt.Errorf("rule file %s: not read within %v", r.path, r.within)
	limited, cancel := context.WithTimeoutCause(ctx, r.within, hung)
	defer cancel()
	t, err := apart(limited, r.busy, func() text { return r.read(r.path) })
	if errors.Is(err, hung) {
		return unread(hung), nil
	}
	return t, err
}

// rules compiles a text. It is ctx's end that is the error if ctx has ended.
func (r *reader) rules(ctx context.Context, t text) (*policy.Rules, error) {
	if t.err != nil { // there is nothing to compile, and a read that hangs may have the turn still
		return nil, t.err
	}
	type compiled struct {
		rules *policy.Rules
		err   error
	}
	c, err := apart(ctx, r.busy, func() compiled {
		rules, err := t.rules(r.path)
		return compiled{rules, err}
	})
	if err != nil {
		return nil, err
	}
	return c.rules, c.err
}

// apart calls f on a goroutine of its own and returns its result. Once ctx ends, f is left to itself, and the error is
// ctx's. Where one that was left still has the turn, it is waited for first.
func apart[T any](ctx context.Context, busy turn, f func() T) (result T, err error) {
	if err := busy.take(ctx); err != nil {
		return result, err
	}
	done := make(chan T, 1)
	go func() {
		defer busy.end()
		done <- f()
	}()
	select {
	case result = <-done:
		return result, nil
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}
