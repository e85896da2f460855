package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/policy"
)

// turn is a mutex that nobody waits for beyond a context; made with more room than one, a semaphore.
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
	path      string
	read      func(path string) text
	within    time.Duration // for a read
	reading   turn          // of mostReads at once: the path of one that hangs may lead to a good disk again
	compiling turn          // of one at once
}

// mostReads bounds the goroutines that reads leave behind.
const mostReads = 4

func newReader(path string, read func(path string) text, within time.Duration) reader {
	return reader{path: path, read: read, within: within, reading: make(turn, mostReads), compiling: newTurn()}
}

// text reads the file. The error is ctx's end; what is wrong with the file, a hanging disk too, is in the text.
func (r *reader) text(ctx context.Context) (text, error) {
	hung := fmt.Errorf("rule file %s: not read within %v", r.path, r.within)
	limited, cancel := context.WithTimeoutCause(ctx, r.within, hung)
	defer cancel()
	switch err := r.reading.take(limited); {
	case errors.Is(err, hung):
		return unread(fmt.Errorf("%w: %d earlier reads still hang", hung, mostReads)), nil
	case err != nil:
		return text{}, err
	}
	t, err := apart(limited, r.reading, func() text { return r.read(r.path) })
	if errors.Is(err, hung) {
		return unread(hung), nil
	}
	return t, err
}

// rules compiles a text. It is ctx's end that is the error if ctx has ended.
func (r *reader) rules(ctx context.Context, t text) (*policy.Rules, error) {
	if t.err != nil {
		return nil, t.err
	}
	if err := r.compiling.take(ctx); err != nil {
		return nil, err
	}
	type compiled struct {
		rules *policy.Rules
		err   error
	}
	c, err := apart(ctx, r.compiling, func() compiled {
		rules, err := t.rules(r.path)
		return compiled{rules, err}
	})
	if err != nil {
		return nil, err
	}
	return c.rules, c.err
}

// apart calls f on a goroutine of its own, which ends held, and returns its result. Once ctx ends, f is left to itself, and
// the error is ctx's.
func apart[T any](ctx context.Context, held turn, f func() T) (result T, err error) {
	done := make(chan T, 1)
	go func() {
		defer held.end()
		done <- f()
	}()
	select {
	case result = <-done:
		return result, nil
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}
