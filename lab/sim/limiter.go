package sim

import (
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Limiter decides for the keys of one run, and remembers them. Keys are small numbers from 0. Time never steps back.
type Limiter interface {
	// Take decides as [algorithm.Strategy.Take] does, and returns the key's state before and after as well.
	Take(key int, now, n int64) (before, after algorithm.State, d algorithm.Decision)
	Limit() algorithm.Limit
	// Most is what is promised: the most units that it admits in any time of length t, half-open, whatever arrives;
	// -1 where nothing is known.
	Most(t time.Duration) int64
	// Size is the bytes of what a key's state holds: in Redis the names of a hash's fields and its values.
	Size(key int) int
	// Calls is how many commands a script runs inside Redis for a decision on n units.
	Calls(allowed bool, n int64) int
}

// Of returns a limiter that runs a strategy, with all keys unseen.
func Of(st algorithm.Strategy) Limiter {
	script, _ := st.Lua()
	names := 0
	for _, w := range script.Words {
		names += len(w)
	}
	return &states{strategy: st, names: names}
}

// states is a strategy with the state of each key.
type states struct {
	strategy algorithm.Strategy
	names    int // bytes of the words' names
	keys     []algorithm.State
}

func (s *states) Limit() algorithm.Limit { return s.strategy.Limit() }

func (s *states) Take(key int, now, n int64) (before, after algorithm.State, d algorithm.Decision) {
	for key >= len(s.keys) {
		s.keys = append(s.keys, algorithm.State{})
	}
	before = s.keys[key]
	after, d = s.strategy.Take(before, now, n)
	s.keys[key] = after
	return before, after, d
}

func (s *states) Size(key int) int {
	if key >= len(s.keys) || s.keys[key] == (algorithm.State{}) {
		return 0
	}
	bytes := s.names
	for _, word := range s.keys[key] {
		bytes += digits(word)
	}
	return bytes
}

// digits is the length of n as text.
func digits(n int64) int {
	length := 1
	if n < 0 {
		length, n = 2, -n
	}
	for n >= 10 {
		n, length = n/10, length+1
	}
	return length
}

// Calls are TIME and HMGET, and for a charge HSET and PEXPIRE.
func (s *states) Calls(allowed bool, n int64) int {
	if allowed && n > 0 {
		return 4
	}
	return 2
}

// Most is the promise of package algorithm's four, by the name of their script.
func (s *states) Most(t time.Duration) int64 {
	script, params := s.strategy.Lua()
	l := s.strategy.Limit()
	reach, period := t.Microseconds()-1, l.Period.Microseconds() // between the first and the last of a half-open time
	if reach < 0 {
		return 0
	}
	tick := int64(1)
	if last := len(params) - 1; script.Name != "fixed_window" && last >= 2 {
		switch {
		case script.Name == "sliding_window":
			tick = params[2]
		case last >= 3:
			tick = params[3]
		}
	}
	reach = (reach + tick - 1) / tick * tick
	switch script.Name {
	case "token_bucket", "leaky_bucket":
		return l.Burst + gained(l, reach)
	case "fixed_window": // the windows that the time may touch
		return ((reach+period-1)/period + 1) * l.Count
	case "sliding_window":
		// With a of the last window's units in the time, at most Count - a·left/Period follow in the running one, and
		// so on for each window.
		return l.Count + gained(l, reach)
	}
	return -1
}

// gained is what a limit's rate gives in a time of µs, rounded down.
func gained(l algorithm.Limit, µs int64) int64 {
	period := l.Period.Microseconds()
	whole, part := µs/period, µs%period
	high, low := bits.Mul64(uint64(part), uint64(l.Count))
	quotient, _ := bits.Div64(high, low, uint64(period)) // below Count, since part is below period
	return whole*l.Count + int64(quotient)
}
