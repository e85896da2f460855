package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab/sim"
)

// BoundaryParams are the choices of a boundary experiment.
type BoundaryParams struct {
	Limit      sluice.Limit  // zero: 600/min. Burst, of the two buckets, 0: Count
	Around     time.Duration // requests come from this long before a window's end to this long after; 0: a sixth of the period
	Rate       float64       // requests a second meanwhile; 0: ten times the limit's
	Algorithms []string      // nil: all, with the exact log
	Progress   func(string)  // is told a line on long runs; nil: nobody
}

func (p BoundaryParams) filled() BoundaryParams {
	p.Limit = filledLimit(p.Limit, sluice.Limit{Count: 600, Period: time.Minute})
	if p.Around == 0 {
		p.Around = p.Limit.Period / 6
	}
	if p.Rate == 0 {
		p.Rate = 10 * limitRate(p.Limit)
	}
	return p
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p BoundaryParams) Check() error {
	p = p.filled()
	if err := p.Limit.Check("lab: boundary"); err != nil {
		return err
	}
	if err := p.traffic().Check(); err != nil {
		return fmt.Errorf("lab: boundary: %w", err)
	}
	if n := p.Rate * 2 * p.Around.Seconds(); n > mostArrivals {
		return fmt.Errorf("lab: boundary: Rate %v: %.0f requests; want at most %d", p.Rate, n, mostArrivals)
	}
	_, err := checkAlgorithms("boundary", p.Algorithms, p.Limit)
	return err
}

func (p BoundaryParams) traffic() sim.Traffic {
	return sim.Traffic{Shape: sim.Boundary{Rate: p.Rate, Period: p.Limit.Period, Around: p.Around}}
}

// Boundary counts what each algorithm lets through around the end of a window: in the 20 s around a minute's, as it stands.
// It runs in virtual time. The error is one of p.Check, or ctx's.
func Boundary(ctx context.Context, p BoundaryParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	names, err := checkAlgorithms("boundary", p.Algorithms, p.Limit)
	if err != nil {
		return Result{}, err
	}
	around := 2 * p.Around
	in := "in_" + inWords(around)
	r := Result{
		Experiment: "boundary",
		Title:      fmt.Sprintf("How much of a limit of %v passes around a window's end?", sluice.Limit{Count: p.Limit.Count, Period: p.Limit.Period}),
		Intro: []string{fmt.Sprintf("%g requests a second, from %v before the end of a window to %v after it. Each algorithm has the limit %v, and saw nothing before.",
			p.Rate, p.Around, p.Around, p.Limit)},
		Params: append(limitFields(p.Limit), Fields{{"around_s", p.Around.Seconds()}, {"rate", p.Rate}, {"start", "fresh"}}...),
		Notes: []string{fmt.Sprintf(`"largest %s" is the most admitted in any %v, both ends included; "half open" without the later end. A leaky bucket admits requests that act later: "acting %s" counts those at the time when they act. `+
			`The end of the window belongs to what is after it.`, spaced(in), around, spaced(in))},
	}
	curves := Lines{
		Title:   "Admitted around the end of a window",
		Caption: fmt.Sprintf("%g requests a second against %v.", p.Rate, p.Limit), X: "seconds from the end of the window", Y: "admitted so far",
		Limit: float64(p.Limit.Count),
	}
	bars := Bars{
		Title: fmt.Sprintf("Most admitted in any %v", around), Caption: "Both ends included. Hatched: above the count of the limit.",
		Unit: "units", Limit: float64(p.Limit.Count), LimitName: "count",
	}
	c := contest{"boundary", p.Limit, p.traffic(), sim.Options{Duration: p.Limit.Period + p.Around, Windows: []time.Duration{around}}, p.Progress}
	end := p.Limit.Period.Microseconds()
	var before, after, last int64
	var curve Series
	apart := around.Microseconds() / curvePoints // a point for each request would be too many
	watch := func(name string) func(*sim.Event) {
		before, after, curve = 0, 0, Series{Name: name}
		return func(e *sim.Event) {
			if e.At < end {
				before += e.Decision.Charged
			} else {
				after += e.Decision.Charged
			}
			if last = e.At; len(curve.X) == 0 || last-end >= int64(curve.X[len(curve.X)-1]*1e6)+apart {
				curve.add(last-end, before+after)
			}
		}
	}
	err = c.each(ctx, names, nil, watch, func(name string, f sim.Figures) {
		w := f.Windows[0]
		r.Results = append(r.Results, Row{name, Fields{
			{"largest_" + in, w.Closed}, {"times_limit", float64(w.Closed) / float64(p.Limit.Count)},
			{"before_end", before}, {"after_end", after},
			{"largest_" + in + "_half_open", w.HalfOpen}, {"acting_" + in, w.ActingTo},
			{"admitted", f.UnitsAdmitted}, {"denied", f.Denied}, {"limit", p.Limit.Count},
		}})
		curve.add(last-end, before+after)
		curves.Series = append(curves.Series, curve)
		bars.Bars = append(bars.Bars, Bar{name, float64(w.Closed)})
	})
	r.Charts = []Chart{curves, bars}
	return r, err
}

// curvePoints is about how many points of a curve are kept.
const curvePoints = 2000

// add adds a count at a time in µs.
func (s *Series) add(µs, n int64) {
	s.X = append(s.X, float64(µs)/1e6)
	s.Y = append(s.Y, float64(n))
}
