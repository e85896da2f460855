package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Shape is when requests arrive. Rates are requests a second.
type Shape interface {
	check() error
	// start returns a function that gives the time of each request in µs since the start, in order; below 0: no more.
	start(r *rand.Rand) func() int64
}

// mostRate bounds requests a second, so that each has a µs of its own.
const mostRate = 1_000_000

func checkRate(name string, rate float64) error {
	if !(rate > 0 && rate <= mostRate) {
		return fmt.Errorf("sim: %s %v: want above 0, at most %d a second", name, rate, mostRate)
	}
	return nil
}

func checkTime(name string, d time.Duration) error {
	if d < time.Microsecond {
		return fmt.Errorf("sim: %s %v: want at least 1µs", name, d)
	}
	return nil
}

// Constant is a request each 1/Rate seconds, from the start on.
type Constant struct{ Rate float64 }

func (s Constant) check() error { return checkRate("Rate", s.Rate) }

func (s Constant) start(*rand.Rand) func() int64 {
	i := -1.0
	return func() int64 { i++; return int64(i * 1e6 / s.Rate) }
}

// Poisson is requests that know nothing of each other: the gaps are exponential.
type Poisson struct{ Rate float64 }

func (s Poisson) check() error { return checkRate("Rate", s.Rate) }

func (s Poisson) start(r *rand.Rand) func() int64 {
	at := 0.0
	return func() int64 { at += r.ExpFloat64() * 1e6 / s.Rate; return int64(at) }
}

// Bursts is Size requests at once, each Every.
type Bursts struct {
	Size  int
	Every time.Duration
}

func (s Bursts) check() error {
	if s.Size < 1 || s.Size > 10_000_000 {
		return fmt.Errorf("sim: Size %d: want 1 to 10000000", s.Size)
	}
	return checkTime("Every", s.Every)
}

func (s Bursts) start(*rand.Rand) func() int64 {
	i := int64(-1)
	return func() int64 { i++; return i / int64(s.Size) * s.Every.Microseconds() }
}

// OnOff is a constant rate for a time, none for a time, and so on.
type OnOff struct {
	Rate    float64 // while on
	On, Off time.Duration
}

func (s OnOff) check() error {
	if err := checkTime("On", s.On); err != nil {
		return err
	}
	if s.Off < 0 {
		return fmt.Errorf("sim: Off %v: want at least 0s", s.Off)
	}
	return checkRate("Rate", s.Rate)
}

func (s OnOff) start(*rand.Rand) func() int64 {
	begin, i, on := int64(0), -1.0, s.On.Microseconds()
	return func() int64 {
		i++
		at := int64(i * 1e6 / s.Rate)
		if at >= on {
			begin, i, at = begin+on+s.Off.Microseconds(), 0, 0
		}
		return begin + at
	}
}

// Boundary is a constant rate around each end of a period that the start begins: from Around before it to Around after
// it, both ends included. It is what an attacker does to whom windows are known.
type Boundary struct {
	Rate           float64
	Period, Around time.Duration // Around is at most half of Period
}

func (s Boundary) check() error {
	if err := checkTime("Around", s.Around); err != nil {
		return err
	}
	if s.Around > s.Period/2 {
		return fmt.Errorf("sim: Around %v: want at most half of Period %v", s.Around, s.Period)
	}
	return checkRate("Rate", s.Rate)
}

func (s Boundary) start(*rand.Rand) func() int64 {
	period, around := s.Period.Microseconds(), s.Around.Microseconds()
	begin, i := period-around, -1.0
	return func() int64 {
		i++
		at := int64(i * 1e6 / s.Rate)
		if at > 2*around {
			begin, i, at = begin+period, 0, 0
		}
		return begin + at
	}
}

// Diurnal is Poisson with a rate that goes up and down once a Day, least at the start and Peak times the mean half a
// day later.
type Diurnal struct {
	Rate float64 // on average
	Peak float64 // 1 to 2, in times the average
	Day  time.Duration
}

func (s Diurnal) check() error {
	if !(s.Peak >= 1 && s.Peak <= 2) {
		return fmt.Errorf("sim: Peak %v: want 1 to 2", s.Peak)
	}
	if err := checkTime("Day", s.Day); err != nil {
		return err
	}
	return checkRate("Rate", s.Rate)
}

func (s Diurnal) start(r *rand.Rand) func() int64 {
	at, day := 0.0, float64(s.Day.Microseconds())
	return func() int64 {
		for { // of arrivals at the highest rate, as many pass as the rate of the hour has
			at += r.ExpFloat64() * 1e6 / (s.Rate * s.Peak)
			if r.Float64()*s.Peak < 1-(s.Peak-1)*math.Cos(2*math.Pi*at/day) {
				return int64(at)
			}
		}
	}
}
