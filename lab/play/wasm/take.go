//go:build js && wasm

package main

import (
	"strconv"
	"syscall/js"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/lab/play/engine"
)

// take(algorithm, count, period, burst, state, now, n) is Strategy.Take as it stands, for tests and the curious. Whole
// numbers are strings here, so that 64 bits pass. It returns the three words of the state to keep, allowed, charged,
// limit, remaining, retry after, reset after, delay (µs; retry -1: never); or one string, the error.
func take(args []js.Value) any {
	st, s, err := strategy(args)
	if err != nil {
		return []any{err.Error()}
	}
	next, d := st.Take(s, long(args, 5), long(args, 6))
	return texts(next[0], next[1], next[2], flag(d.Allowed), d.Charged, d.Limit, d.Remaining,
		wait(d.RetryAfter), wait(d.ResetAfter), wait(d.Delay))
}

// adjust(algorithm, count, period, burst, state, now, n, at) is Strategy.Adjust, likewise: the three words.
func adjust(args []js.Value) any {
	st, s, err := strategy(args)
	if err != nil {
		return []any{err.Error()}
	}
	next := st.Adjust(s, long(args, 5), long(args, 6), long(args, 7))
	return texts(next[0], next[1], next[2])
}

func strategy(args []js.Value) (algorithm.Strategy, algorithm.State, error) {
	var s algorithm.State
	if len(args) > 4 && args[4].Type() == js.TypeObject {
		for i := range s {
			s[i] = long([]js.Value{args[4].Index(i)}, 0)
		}
	}
	st, err := engine.Strategy(text(args, 0), algorithm.Limit{
		Count: long(args, 1), Period: time.Duration(long(args, 2)) * time.Microsecond, Burst: long(args, 3),
	})
	return st, s, err
}

func long(args []js.Value, i int) int64 {
	n, _ := strconv.ParseInt(text(args, i), 10, 64) // what is no number counts as 0
	return n
}

func texts(numbers ...int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.FormatInt(n, 10)
	}
	return all
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
