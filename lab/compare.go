package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab/sim"
)

// CompareParams are the choices of a comparison. What a shape or manners do not need is not looked at.
type CompareParams struct {
	Limit      sluice.Limit // zero: 10/s. Burst, of the two buckets, 0: Count
	Algorithms []string     // nil: all, with the exact log
	Others     []Contender  // run beside them, each with its own limit

	Shape  string        // of the arrivals, one of Shapes(); "": "poisson"
	Rate   float64       // requests a second: on average; of on-off and boundary while there are any; 0: 1.5 times the limit's
	Size   int           // bursts: requests in each; 0: twice the limit's Count
	Every  time.Duration // bursts: from one to the next; 0: what makes Rate of Size
	On     time.Duration // on-off: with requests; 0: two Periods
	Off    time.Duration // on-off: without; 0: two Periods
	Around time.Duration // boundary: on both sides of a window's end; 0: a sixth of the Period
	Peak   float64       // diurnal: the highest rate, 1 to 2 times Rate; 0: 2
	Day    time.Duration // diurnal: from one low to the next; 0: Duration
	Trace  *sim.Trace    // trace: what was recorded

	Subjects int     // who ask; 0: 1
	Skew     float64 // Zipf's exponent of their shares; 0: all the same
	OneKey   bool    // they share one limit; else each has its own
	Cost     int64   // units of a request; 0: 1
	MostCost int64   // above Cost: costs are spread evenly from Cost to this

	Retry string        // what those do who are denied, one of Retries(); "": "none"
	Pause time.Duration // of rude, 0: 10ms, and at first of backoff, 0: 100ms
	Tries int           // most for one request; 0: 10

	Duration time.Duration // of the run, in virtual time; 0: 60 Periods, of a trace its own
	Seed     uint64
	Progress func(string) // is told a line on long runs; nil: nobody
}

// Shapes returns the names of arrivals: sim has a type of each. "trace" is CompareParams.Trace.
func Shapes() []string {
	return []string{"constant", "poisson", "bursts", "on-off", "boundary", "diurnal", "trace"}
}

// Retries returns the names of what clients do that are denied.
func Retries() []string { return []string{"none", "polite", "rude", "backoff"} }

const (
	mostArrivals = 100_000_000 // in a run, of each algorithm
	mostMemory   = 50_000_000  // units that the windows of all keys may hold
)

func (p CompareParams) filled() CompareParams {
	p.Limit = filledLimit(p.Limit, sluice.Limit{Count: 10, Period: time.Second})
	if p.Limit.Check("") != nil {
		return p
	}
	period := p.Limit.Period
	def := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = max(otherwise.Truncate(time.Microsecond), time.Microsecond)
		}
	}
	if p.Shape == "" {
		p.Shape = "poisson"
	}
	if p.Retry == "" {
		p.Retry = "none"
	}
	if p.Rate == 0 {
		p.Rate = 1.5 * limitRate(p.Limit)
	}
	if p.Size == 0 {
		p.Size = int(min(2*p.Limit.Count, 10_000_000))
	}
	if p.Rate > 0 {
		def(&p.Every, time.Duration(min(float64(p.Size)/p.Rate*1e9, float64(mostDuration*24*366))))
	}
	def(&p.On, 2*period)
	def(&p.Off, 2*period)
	def(&p.Around, period/6)
	if p.Peak == 0 {
		p.Peak = 2
	}
	if p.Shape == "trace" && p.Trace != nil {
		def(&p.Duration, p.Trace.Duration())
	}
	def(&p.Duration, min(60*min(period, 366*24*time.Hour), 366*24*time.Hour))
	def(&p.Day, p.Duration)
	return p
}

// arrivals are what p's shape is.
func (p CompareParams) arrivals() (sim.Arrivals, error) {
	t := sim.Traffic{Subjects: p.Subjects, Skew: p.Skew, Cost: p.Cost, MostCost: p.MostCost}
	switch p.Shape {
	case "constant":
		t.Shape = sim.Constant{Rate: p.Rate}
	case "poisson":
		t.Shape = sim.Poisson{Rate: p.Rate}
	case "bursts":
		t.Shape = sim.Bursts{Size: p.Size, Every: p.Every}
	case "on-off":
		t.Shape = sim.OnOff{Rate: p.Rate, On: p.On, Off: p.Off}
	case "boundary":
		t.Shape = sim.Boundary{Rate: p.Rate, Period: p.Limit.Period, Around: p.Around}
	case "diurnal":
		t.Shape = sim.Diurnal{Rate: p.Rate, Peak: p.Peak, Day: p.Day}
	case "trace":
		if p.Trace == nil {
			return nil, errors.New("arrivals of a trace: Trace: want one")
		}
		return *p.Trace, p.Trace.Check()
	default:
		return nil, fmt.Errorf("arrivals: Shape %q: want one of %s", p.Shape, strings.Join(Shapes(), ", "))
	}
	return t, t.Check()
}

// expected is about how many requests arrive.
func (p CompareParams) expected() float64 {
	seconds := p.Duration.Seconds()
	switch p.Shape {
	case "bursts":
		return float64(p.Size) * (1 + seconds/p.Every.Seconds())
	case "on-off":
		return p.Rate * seconds * float64(p.On) / float64(p.On+p.Off)
	case "boundary":
		return p.Rate * seconds * 2 * float64(p.Around) / float64(p.Limit.Period)
	case "trace":
		return float64(len(p.Trace.Requests))
	}
	return p.Rate * seconds
}

// options are those of a run.
func (p CompareParams) options() sim.Options {
	return sim.Options{
		Duration: p.Duration, Seed: p.Seed, OneKey: p.OneKey, Windows: []time.Duration{p.Limit.Period},
		Clients: sim.Clients{Manners: sim.Manners(slices.Index(Retries(), p.Retry)), Pause: p.Pause, Tries: p.Tries},
	}
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p CompareParams) Check() error {
	p = p.filled()
	if err := p.Limit.Check("lab: compare"); err != nil {
		return err
	}
	if _, err := p.arrivals(); err != nil {
		return fmt.Errorf("lab: compare: %w", err)
	}
	if !slices.Contains(Retries(), p.Retry) {
		return fmt.Errorf("lab: compare: Retry %q: want one of %s", p.Retry, strings.Join(Retries(), ", "))
	}
	if err := p.options().Check(); err != nil {
		return fmt.Errorf("lab: compare: %w", err)
	}
	if n := p.expected(); n > mostArrivals {
		return fmt.Errorf("lab: compare: %.3g requests in %v: want at most %d", n, p.Duration, mostArrivals)
	}
	if n := float64(p.Limit.Count+p.Limit.Burst) * float64(max(1, p.Subjects)); min(n, p.expected()) > mostMemory {
		return fmt.Errorf("lab: compare: Limit %v: %.3g units in the windows of all subjects; want at most %d", p.Limit, n, mostMemory)
	}
	names, err := checkAlgorithms("compare", p.Algorithms, p.Limit)
	for _, other := range p.Others {
		switch {
		case err != nil:
		case other.Strategy == nil:
			err = fmt.Errorf("lab: compare: Others: %q has no Strategy", other.Name)
		case other.Name == "" || slices.Contains(names, other.Name):
			err = fmt.Errorf("lab: compare: Others: name %q: want one of its own", other.Name)
		}
		names = append(slices.Clip(names), other.Name)
	}
	return err
}

// bins is the parts of a run that are drawn.
const bins = 120

// Compare runs all algorithms against the same arrivals, in virtual time. The error is one of p.Check, or ctx's.
func Compare(ctx context.Context, p CompareParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	names, err := checkAlgorithms("compare", p.Algorithms, p.Limit)
	if err != nil {
		return Result{}, err
	}
	arrivals, err := p.arrivals()
	if err != nil {
		return Result{}, fmt.Errorf("lab: compare: %w", err)
	}
	d := newComparison(p)
	c := contest{"compare", p.Limit, arrivals, p.options(), p.Progress}
	if err := c.each(ctx, names, p.Others, d.watch, d.done); err != nil {
		return Result{}, err
	}
	d.result.Charts = []Chart{d.panels}
	if d.marked {
		d.result.Charts = append(d.result.Charts, d.marks)
	}
	d.result.Charts = append(d.result.Charts, d.largest, d.waits)
	return d.result, nil
}
