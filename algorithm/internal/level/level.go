// Package level is the arithmetic that the token bucket and the leaky bucket share: a level that rises by what is
// charged and falls at a steady rate. A bucket calls it tokens spent, a queue calls it units waiting.
//
// The state is the words spent, ts, unit: the level at time ts, in units of which one token has `unit`. The unit is
// chosen so that the level falls by a whole number of units each tick, and nothing is ever rounded. A negative spent
// is a level that includes a debt: see [Level.Adjust].
package level

import (
	_ "embed"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Source is the Lua twin: the function level, which an algorithm's own file calls where its usual path does not apply.
//
//go:embed level.lua
var Source string

// Level holds the parameters of one limit. It is immutable.
type Level struct {
	per   int64 // units in a token
	gain  int64 // units regained each tick
	burst int64 // tokens that may be spent at once
	tick  int64 // µs
}

// ticks are the clock ticks tried, finest first, in µs.
var ticks = [...]int64{1, 1_000, 1_000_000}

// New fits a limit into integers, on the finest tick that divides the period and keeps every product, also with one
// Burst owed, below 2^52. Its error names the field and the bound.
func New(who string, l algorithm.Limit) (Level, error) {
	if err := l.Check(who); err != nil {
		return Level{}, err
	}
	if l.Burst < 1 {
		return Level{}, fmt.Errorf("%s: Burst %d: want at least 1", who, l.Burst)
	}
	period := int64(l.Period / time.Microsecond)
	most := int64(0) // the largest burst that any tick allows
	for _, tick := range ticks {
		if period%tick != 0 {
			break
		}
		g := gcd(l.Count, period/tick)
		v := Level{per: period / tick / g, gain: l.Count / g, burst: l.Burst, tick: tick}
		fits := (algorithm.Bound - 1) / (2 * v.per)
		if l.Burst > fits {
			most = max(most, fits)
			continue
		}
		if full := ceil(2*l.Burst*v.per, v.gain); full > int64(algorithm.MaxPeriod/time.Microsecond)/tick {
			return Level{}, fmt.Errorf("%s: Burst %d at %d per %v: time to full with one Burst owed is %.3g years: want at most 35.7 (2^50 µs)",
				who, l.Burst, l.Count, l.Period, float64(full)*float64(tick)/(365.25*86400e6))
		}
		return v, nil
	}
	return Level{}, fmt.Errorf("%s: Burst %d: want at most %d with %d per %v, to keep arithmetic exact below 2^52",
		who, l.Burst, most, l.Count, l.Period)
}

// Params are the Lua twin's p: units per token, units regained per tick, burst in tokens, µs per tick. The last is
// left out where it is 1.
func (l *Level) Params() []int64 {
	if l.tick == 1 {
		return []int64{l.per, l.gain, l.burst}
	}
	return []int64{l.per, l.gain, l.burst, l.tick}
}

// Take is [algorithm.Strategy.Take]: it reads s and leaves there the state to keep, and fills the zero d. It returns
// the level that stood before this call, for [Level.Delay]. (Results through pointers spare copies on the hot path.)
//
// With level(t) = max(0, spent - gain·(t-ts)), n tokens pass if level(now) + n·per <= burst·per.
func (l *Level) Take(s *algorithm.State, d *algorithm.Decision, now, n int64) int64 {
	spent, owed, ts, unit := l.words(s, now)
	full := l.burst * l.per
	passed := l.passed(ts, now)
	held := l.held(spent, owed, unit)
	before := l.drain(held, passed)

	d.Limit, d.At = l.burst, now
	if n == 0 || uint64(n) > uint64(l.burst) || before+n*l.per > full { // a negative n is a large unsigned one
		d.Allowed = n == 0
		if before < full {
			d.Remaining = (full - before) / l.per
		}
		switch {
		case d.Allowed:
		case uint64(n) > uint64(l.burst):
			d.RetryAfter = algorithm.Never
		default:
			d.RetryAfter = µs(ts + ceil(held-(full-n*l.per), l.gain)*l.tick - now)
		}
		d.ResetAfter = l.reset(spent, ts, unit, now)
		return before
	}

	spent, ts, unit = l.bring(spent, ts, unit, now, passed, n)
	spent += n * unit
	owed = owed && spent > times(l.burst, unit)
	d.Allowed, d.Charged = true, n
	if held = l.held(spent, owed, unit); held < full {
		d.Remaining = (full - held) / l.per
	}
	d.ResetAfter = l.reset(spent, ts, unit, now)
	*s = state(spent, owed, ts, unit)
	return before
}

// TakeUsual is Take where that needs no more than a few lines, or does nothing and returns false: n passes, the tick is
// 1 µs, and the state is of the own unit, not zero, and includes no debt. Most calls are like that.
func (l *Level) TakeUsual(s *algorithm.State, d *algorithm.Decision, now, n int64) (before int64, ok bool) {
	if l.tick != 1 || s[2] != l.per || s[0] <= 0 || uint64(n-1) >= uint64(l.burst) {
		return 0, false
	}
	spent, ts, full := s[0], s[1], l.burst*l.per
	passed := max(0, now-ts)
	before = l.drain(min(spent, full), passed)
	if before+n*l.per > full {
		return 0, false
	}
	if spent = l.drain(spent, passed); spent == 0 {
		ts = now
	} else {
		ts += passed
	}
	spent += n * l.per
	s[0], s[1] = spent, ts
	d.Allowed, d.Charged, d.Limit, d.At = true, n, l.burst, now
	if spent < full {
		d.Remaining = (full - spent) / l.per
	}
	ticks := spent
	if l.gain > 1 { // a division is an eighth of the whole decision
		ticks = ceil(spent, l.gain)
	}
	d.ResetAfter = µs(ts + min(ticks, algorithm.Bound/2) - now)
	return before, true
}

// Delay is how long a level, as Take returned it, takes to fall to zero: a queue's wait, rounded up to a tick.
func (l *Level) Delay(before int64) time.Duration { return µs(ceil(before, l.gain) * l.tick) }

// Adjust is [algorithm.Strategy.Adjust]. What is added beyond the burst is a debt: it is written as a negative
// spent, so that Take waits until it is worked off. Without that mark a level above the burst stems from a larger
// limit that was edited down, and Take waits for one token of the new rate.
func (l *Level) Adjust(s algorithm.State, now, n int64) algorithm.State {
	spent, owed, ts, unit := l.words(&s, now)
	n = min(max(n, -algorithm.Bound), algorithm.Bound)
	most := 2 * l.burst
	spent, ts, unit = l.bring(spent, ts, unit, now, l.passed(ts, now), max(min(n, most), most-spent/unit-2))
	if n < 0 {
		spent = max(0, spent-min(-n, spent/unit+1)*unit)
	} else if spent/unit < most && n > 0 {
		spent = min(spent+times(min(n, most), unit), times(most, unit))
		owed = true
	}
	if spent == 0 {
		return algorithm.State{}
	}
	return state(spent, owed && spent > times(l.burst, unit), ts, unit)
}

// times is tokens·unit, or 2^52 where that is less.
func times(tokens, unit int64) int64 {
	if tokens > algorithm.Bound/unit {
		return algorithm.Bound
	}
	return tokens * unit
}

// words reads a state; a key never seen starts empty on the tick that is running.
func (l *Level) words(s *algorithm.State, now int64) (spent int64, owed bool, ts, unit int64) {
	spent, ts, unit = s[0], s[1], s[2]
	if spent < 0 {
		spent, owed = -spent, true
	}
	if spent == 0 {
		ts, unit = now-now%l.tick, l.per
	}
	if unit < 1 { // never written by us
		unit = l.per
	}
	return spent, owed, ts, unit
}

func state(spent int64, owed bool, ts, unit int64) algorithm.State {
	if owed {
		spent = -spent
	}
	return algorithm.State{spent, ts, unit}
}

// passed counts whole ticks since ts; none where the clock stepped back. Counting from ts keeps the phase of a
// writer with a finer tick, so that two limits on one key neither lose a part of a tick nor count it twice.
func (l *Level) passed(ts, now int64) int64 {
	switch {
	case now <= ts:
		return 0
	case l.tick == 1: // spares a division
		return now - ts
	}
	return (now - ts) / l.tick
}

// held is the level at ts as this limit sees it, in its own units, rounded up: clamped to the burst, or to one burst
// more where it includes a debt.
func (l *Level) held(spent int64, owed bool, unit int64) int64 {
	most := l.burst
	if owed {
		most *= 2
	}
	if unit != l.per {
		if spent/unit >= most {
			return most * l.per
		}
		spent = rescaleUp(spent, unit, l.per)
	}
	return min(spent, most*l.per)
}

// drain is the level x after the given ticks, in own units.
func (l *Level) drain(x, ticks int64) int64 {
	if over, gained := bits.Mul64(uint64(ticks), uint64(l.gain)); over == 0 && gained < uint64(x) {
		return x - int64(gained)
	}
	return 0
}

// reset is the time until the stored level, unclamped, has fallen to zero: at most 2^51 µs after ts.
func (l *Level) reset(spent, ts, unit, now int64) time.Duration {
	if spent == 0 {
		return 0
	}
	ticks := int64(math.MaxInt64)
	if unit == l.per {
		ticks = ceil(spent, l.gain)
	} else if spent/unit < algorithm.Bound/l.per {
		ticks = ceil(rescaleUp(spent, unit, l.per), l.gain)
	}
	if ticks > algorithm.Bound/2/l.tick {
		ticks = algorithm.Bound / 2 / l.tick
	}
	return µs(max(0, ts+ticks*l.tick-now))
}

// bring moves the stored level, unclamped, from ts to now, in a unit that holds both it and this limit's rate, and
// in which it and n tokens more stay below 2^52.
func (l *Level) bring(spent, ts, unit, now, passed, n int64) (int64, int64, int64) {
	if unit == l.per {
		spent = l.drain(spent, passed)
	} else {
		common := l.common(unit, spent/unit+2+max(n, 0))
		gained := min(passed, algorithm.Bound/l.gain) * l.gain
		if gained/l.per > spent/unit || spent/unit < algorithm.Bound/l.per && l.drain(rescaleUp(spent, unit, l.per), passed) == 0 {
			spent = 0 // also where what is left is only what rounding added
		} else {
			spent = max(0, rescaleUp(spent, unit, common)-rescaleDown(gained, l.per, common))
		}
		unit = common
	}
	if spent == 0 {
		return 0, now - now%l.tick, l.per
	}
	return spent, ts + passed*l.tick, unit
}

// fine is the largest unit that is made by multiplying two: beyond, rounding loses less than a 1000th of a token.
const fine = 1 << 20

// common chooses the unit for a state that another limit wrote: the finer of the two, or their product while that is
// small, so that limits that take turns on a key lose nothing; and where it would not fit, the coarser.
func (l *Level) common(unit, tokens int64) int64 {
	small, large := min(unit, l.per), max(unit, l.per)
	common := large
	if large%small != 0 && small <= fine/large {
		common = small * large
	}
	if tokens > algorithm.Bound/common {
		common = l.per
	}
	if tokens > algorithm.Bound/l.per {
		common = unit
	}
	return common
}

// half is the largest divisor that leaves room for a product below 2^52.
const half = 1 << 26

// rescaleUp is ceil(x·to/from) without a product above 2^52: exact where one divides the other or from is at most 2^26, else
// up to 2^-25 of a token more.
func rescaleUp(x, from, to int64) int64 {
	if to%from == 0 {
		return x * (to / from)
	}
	if from%to == 0 {
		return ceil(x, from/to)
	}
	whole, part := x/from, x%from
	s := ceil(from, half)
	part, from = ceil(part, s), from/s
	return whole*to + part*(to/from) + ceil(part*(to%from), from)
}

// rescaleDown is floor(x·to/from), likewise: never more than that.
func rescaleDown(x, from, to int64) int64 {
	if to%from == 0 {
		return x * (to / from)
	}
	if from%to == 0 {
		return x / (from / to)
	}
	whole, part := x/from, x%from
	s := ceil(from, half)
	part, from = part/s, ceil(from, s)
	return whole*to + part*(to/from) + part*(to%from)/from
}

func ceil(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}

func µs(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
