// Package algorithm holds the words of rate-limit arithmetic: a [Strategy] is a pure function over a [State] of three
// integers, and a [Decision] is its answer.
//
// Users of a limiter rarely import this package: package sluice aliases what they need. Authors of an algorithm
// implement [Strategy] and test it with package algorithmtest; authors of a store run it, and test with storetest.
//
// All arithmetic is on integers. Time is µs since the Unix epoch, and every quantity stays within ±2^52, so that the
// Lua half of an algorithm, which has only doubles, computes the same integers.
package algorithm

import (
	"context"
	"math"
	"time"
)

// Bound is 2^52: the words of a State lie within ±Bound, and times in 0 <= t < Bound.
//
// A double holds every integer up to 2^53 exactly. One bit less leaves room for a sum of two, and makes
// floor(a/b) exact for every a below it: the quotient of two such integers is never rounded up to a whole number.
const Bound = 1 << 52

// Never is the RetryAfter of a request that no wait will help: its cost is above the burst.
const Never = time.Duration(math.MaxInt64)

// State is all that a strategy remembers of one key: three integers, each within ±2^52, so that a Lua double holds
// them and their quotients exactly. The zero State is a key never seen: forgetting and resetting are one.
type State [3]int64

// A Strategy decides. It has no clock, lock or memory of its own, is immutable, and is safe for concurrent use.
// Spending never turns a denial into an allowance; only time, giving back, or a new limit does. After a charge, further
// ones at the same instant add up: k of n units pass and leave what one of k·n does, so that a store may run them as one.
//
// Only stores call Take and Adjust: they hold the State and make the call atomic.
type Strategy interface {
	// Take answers whether n >= 0 units may pass at now (µs since the Unix epoch, 0 <= now < 2^52) and returns the
	// state to keep: s untouched when it denies or n is 0. now may lie before the last call's; Take acts as if no
	// time had passed. It never panics, whatever words s holds. A negative n is denied with Never.
	Take(s State, now, n int64) (State, Decision)
	// Adjust adds n units (negative: gives back) to what was charged at time at, whether or not they fit: never below
	// zero, and adding stops at one Burst over. A window that has ended gets nothing back.
	Adjust(s State, now, n, at int64) State
	// Lua returns the twins of both, and their parameters. Both are shared and must not be written to.
	// Two strategies are the same if the *Script is the same and the parameters are equal.
	Lua() (*Script, []int64)
	// Limit is what Take promises over time; headers, fallback and metrics are made of it.
	Limit() Limit
}

// Script is the Lua half of an algorithm: its source defines the local functions take and adjust, the twins of
// [Strategy.Take] and [Strategy.Adjust].
type Script struct {
	Name   string   // ends the Redis key; changes whenever the meaning of a word changes
	Source string   // Lua 5.1, without redis.call, KEYS or ARGV
	Words  []string // names the State's integers in order, e.g. "spent", "ts", "unit": the fields of the Redis hash
}

// Source says which store answered.
type Source uint8

const (
	Shared  Source = iota // decided on the state that all processes share
	Cached                // a denial repeated from a remembered state, without asking the shared store
	Local                 // decided on this process's own state
	Assumed               // decided on no state at all: fail-open or fail-closed
)

// String returns shared, cached, local or assumed.
func (s Source) String() string {
	switch s {
	case Shared:
		return "shared"
	case Cached:
		return "cached"
	case Local:
		return "local"
	case Assumed:
		return "assumed"
	}
	return "unknown"
}

// Decision is the answer to one request. The zero Decision is not allowed.
//
// An example: a token bucket of 10 a second with a burst of 10, full, is asked for 4:
// Allowed true, Charged 4, Limit 10, Remaining 6, RetryAfter 0, ResetAfter 400ms. Asked for 7 at the same instant:
// Allowed false, Charged 0, Limit 10, Remaining 6, RetryAfter 100ms, ResetAfter 400ms.
type Decision struct {
	Allowed    bool          // the request may pass; under UpTo: Charged > 0, or N == 0
	Source     Source        // set by the store that answers
	Charged    int64         // units this call took
	Limit      int64         // most units at one instant, from a fresh state
	Remaining  int64         // units that would pass now
	RetryAfter time.Duration // until this same request would pass; 0 if allowed, Never if it never can
	ResetAfter time.Duration // until the state is as good as new: header, Redis TTL and eviction alike
	Delay      time.Duration // hold the allowed request this long before acting; only leaky sets it
	At         int64         // the store's clock when it decided, µs since the Unix epoch
}

// Hold sleeps for d.Delay, which only the leaky bucket sets, and returns nil; or ctx's error as soon as ctx is done.
// With no Delay it returns at once, so every caller may call it.
func (d Decision) Hold(ctx context.Context) error {
	if d.Delay <= 0 {
		return nil
	}
	t := time.NewTimer(d.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// UpTo takes as much of n as fits, by two calls of Take: for n and, if that is denied, for what remains.
// The RetryAfter of a wholly refused call is for n.
func UpTo(st Strategy, s State, now, n int64) (State, Decision) {
	next, d := st.Take(s, now, n)
	if d.Allowed || d.Remaining <= 0 || n < 0 {
		return next, d
	}
	return st.Take(s, now, d.Remaining)
}

// Clock turns a time into a strategy's now: µs since the Unix epoch, clamped to 0 <= now < 2^52 (the year 2112).
func Clock(t time.Time) int64 {
	sec := t.Unix()
	switch {
	case sec < 0:
		return 0
	case sec > Bound/1_000_000:
		return Bound - 1
	}
	return min(t.UnixMicro(), Bound-1)
}
