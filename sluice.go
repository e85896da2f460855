package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// The words of package algorithm that users of a limiter need.
type (
	Decision = algorithm.Decision
	Strategy = algorithm.Strategy
	Limit    = algorithm.Limit
	Source   = algorithm.Source
)

// Sources of a Decision.
const (
	Shared  = algorithm.Shared  // decided on the state that all processes share
	Cached  = algorithm.Cached  // a denial repeated from a remembered state
	Local   = algorithm.Local   // decided on this process's own state
	Assumed = algorithm.Assumed // decided on no state: fail-open or fail-closed
)

// Never is the RetryAfter of a request that no wait will help.
const Never = algorithm.Never

// ParseLimit reads "100/10s", "5/min" or "1000/h"; see [algorithm.ParseLimit].
func ParseLimit(s string) (Limit, error) { return algorithm.ParseLimit(s) }

var (
	// ErrCost means that N is below 0 outside Settle, or that a Reset stands in a TakeAll. Nothing is charged.
	ErrCost = errors.New("sluice: cost below 0")
	// ErrUnavailable means that the store could not be reached or asked in time. It feeds a circuit breaker. From a
	// deadline it also wraps context.DeadlineExceeded; a cancellation is context.Canceled alone.
	ErrUnavailable = errors.New("sluice: store unavailable")
	// ErrState means that the key's words, type or reply are unusable. It does not feed a breaker. Reset heals it.
	ErrState = errors.New("sluice: state unusable")
	// ErrNever is Wait's answer where n can never pass, because it is above the burst.
	ErrNever = errors.New("sluice: cost above the burst can never pass")
)

// Key names one state: who is limited (Subject) by which rule. They are two fields, never one joined string, so that
// no separator can be forged. Any bytes and any length work, the empty string too.
type Key struct{ Rule, Subject string }

// Mode says what a store does with an Ask.
type Mode uint8

const (
	Charge Mode = iota // N or nothing
	Peek               // the verdict for N; nothing charged: Remaining and ResetAfter as they stand, N not deducted
	UpTo               // as much of N as fits; RetryAfter is for the whole N, 0 if any was charged
	Settle             // Adjust by N at At; Allowed true, Remaining and ResetAfter of the state left
	Reset              // forget the key without reading it (heals ErrState); Allowed true
)

// String returns charge, peek, upto, settle or reset.
func (m Mode) String() string {
	if names := [...]string{"charge", "peek", "upto", "settle", "reset"}; int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Ask is one question to a store.
type Ask struct {
	Strategy Strategy
	Key      Key
	N        int64 // units; below 0 only under Settle, where it gives back
	Mode     Mode
	At       int64 // Settle only: Decision.At of the charge, µs since the Unix epoch
}

// Check returns ErrCost for a negative N outside Settle, and an error for an Ask that no store can run: one with no
// Strategy or an unknown Mode. Stores call it first.
func (a *Ask) Check() error {
	switch {
	case a.Strategy == nil:
		return errors.New("sluice: ask: Strategy is nil")
	case a.Mode > Reset:
		return fmt.Errorf("sluice: ask: Mode %d: want at most %d", a.Mode, Reset)
	case a.N < 0 && a.Mode != Settle:
		return fmt.Errorf("%w: N is %d, want at least 0", ErrCost, a.N)
	}
	return nil
}

// Decide runs the ask on a state at a time (µs since the Unix epoch, 0 <= now < 2^52) and returns the state to keep.
// It is pure. A store that holds states calls it where the state can't change meanwhile; users of a limiter do not.
func (a *Ask) Decide(s algorithm.State, now int64) (algorithm.State, Decision) {
	switch a.Mode {
	case Charge:
		return a.Strategy.Take(s, now, a.N)
	case Peek:
		_, d := a.Strategy.Take(s, now, a.N)
		if d.Charged > 0 {
			_, asIs := a.Strategy.Take(s, now, 0)
			d.Charged, d.Remaining, d.ResetAfter = 0, asIs.Remaining, asIs.ResetAfter
		}
		return s, d
	case UpTo:
		return algorithm.UpTo(a.Strategy, s, now, a.N)
	case Settle:
		s = a.Strategy.Adjust(s, now, a.N, a.At)
	case Reset:
		s = algorithm.State{}
	}
	_, d := a.Strategy.Take(s, now, 0)
	return s, d
}

// Store is the one place that keeps states and runs strategies on them, each ask atomically. Implementations are
// safe for concurrent use. Test one with package storetest.
type Store interface {
	// Take decides one ask. An error means that it could not decide; a denial is a Decision. It returns by ctx's
	// deadline or cancellation, and it retains nothing of a after it has returned.
	Take(ctx context.Context, a Ask) (Decision, error)
}

// StoreFunc is a function that is a Store, for tests and for stores around a store.
type StoreFunc func(context.Context, Ask) (Decision, error)

// Take calls f.
func (f StoreFunc) Take(ctx context.Context, a Ask) (Decision, error) { return f(ctx, a) }

// Observer is told of each decision after it was made. Observe is called on the caller's goroutine, outside every
// lock, from many goroutines at once.
type Observer interface {
	Observe(ctx context.Context, a Ask, d Decision, err error, took time.Duration)
}

// ObserverFunc is a function that is an Observer.
type ObserverFunc func(ctx context.Context, a Ask, d Decision, err error, took time.Duration)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, a Ask, d Decision, err error, took time.Duration) {
	f(ctx, a, d, err, took)
}

// Observe returns a store that decides as s does and tells o of each ask: of those in a TakeAll one by one, each with
// the time that the whole call took.
func Observe(s Store, o Observer) Store { return observed{s, o} }

type observed struct {
	Store
	to Observer
}

func (o observed) Take(ctx context.Context, a Ask) (Decision, error) {
	start := time.Now()
	d, err := o.Store.Take(ctx, a)
	o.to.Observe(ctx, a, d, err, time.Since(start))
	return d, err
}

// TakeAll is the Batcher of a decorator: it has one whether or not the store inside does.
func (o observed) TakeAll(ctx context.Context, asks []Ask) (Verdict, error) {
	start := time.Now()
	v, err := TakeAll(ctx, o.Store, asks)
	took := time.Since(start)
	for i, a := range asks {
		var d Decision
		if i < len(v.Each) {
			d = v.Each[i]
		}
		o.to.Observe(ctx, a, d, err, took)
	}
	return v, err
}

// Must returns v, or panics with err: for limits that are constants of the program.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
