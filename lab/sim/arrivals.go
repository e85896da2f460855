package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// Request is one arrival.
type Request struct {
	At      int64 // µs since the run's start
	Subject int   // who asks, from 0
	N       int64 // units
}

// Arrivals are what a run meets: each Start gives the same requests for the same seed.
type Arrivals interface {
	Check() error             // what can't be run, and its bound
	Start(seed uint64) Stream // nil of Greedy alone
}

// Stream returns one request after the other, in order of time; false when there are no more.
type Stream func() (Request, bool)

// Traffic is arrivals of a shape, from some subjects, at some cost.
type Traffic struct {
	Shape    Shape
	Subjects int     // 0: 1
	Skew     float64 // Zipf's exponent: the k-th subject has a weight of 1/k^Skew; 0: all the same
	Cost     int64   // units of a request; 0: 1
	MostCost int64   // above Cost: costs are spread evenly from Cost to this
}

// mostSubjects bounds the keys that a run remembers.
const mostSubjects = 1_000_000

// Check says what of t can't be run.
func (t Traffic) Check() error {
	switch {
	case t.Shape == nil:
		return fmt.Errorf("sim: Shape: want one")
	case t.Subjects < 0 || t.Subjects > mostSubjects:
		return fmt.Errorf("sim: Subjects %d: want 1 to %d", t.Subjects, mostSubjects)
	case !(t.Skew >= 0 && t.Skew <= 10):
		return fmt.Errorf("sim: Skew %v: want 0 to 10", t.Skew)
	case t.Cost < 0 || t.Cost > 1e9:
		return fmt.Errorf("sim: Cost %d: want 1 to 1e9", t.Cost)
	case t.MostCost != 0 && t.MostCost < max(1, t.Cost) || t.MostCost > 1e9:
		return fmt.Errorf("sim: MostCost %d: want Cost to 1e9", t.MostCost)
	}
	return t.Shape.check()
}

// Start begins the requests of a seed.
func (t Traffic) Start(seed uint64) Stream {
	// Times, subjects and costs have a source each, so that a choice of one leaves the others as they are.
	next := t.Shape.start(rand.New(rand.NewPCG(seed, 1)))
	subjects, costs := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
	count, cost := max(1, t.Subjects), max(1, t.Cost)
	var upTo []float64 // sums of the weights
	if t.Skew > 0 {
		sum := 0.0
		for k := range count {
			sum += math.Pow(float64(k+1), -t.Skew)
			upTo = append(upTo, sum)
		}
	}
	return func() (Request, bool) {
		r := Request{At: next(), N: cost}
		if r.At < 0 {
			return Request{}, false
		}
		switch {
		case upTo != nil:
			r.Subject = min(count-1, sort.SearchFloat64s(upTo, subjects.Float64()*upTo[count-1]))
		case count > 1:
			r.Subject = subjects.IntN(count)
		}
		if t.MostCost > cost {
			r.N += costs.Int64N(t.MostCost - cost + 1)
		}
		return r, true
	}
}

// Greedy is a client that takes one unit after the other as soon as each passes: again at once when it is allowed, and
// when exactly RetryAfter has passed when it is denied: endless demand, without the cost of asking in vain.
type Greedy struct{}

// Check is nil.
func (Greedy) Check() error { return nil }

// Start is nil: what comes next depends on the decisions.
func (Greedy) Start(uint64) Stream { return nil }
