package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab/sim"
)

// BurstParams are the choices of a burst experiment.
type BurstParams struct {
	Limit      sluice.Limit  // zero: 10/s. Burst, of the two buckets, 0: Count
	Window     time.Duration // the time that is looked at; 0: the limit's Period
	Strict     bool          // add token buckets that let no more than Count through in any Window
	Algorithms []string      // nil: all, with the exact log
	Progress   func(string)  // is told a line on long runs; nil: nobody
}

func (p BurstParams) filled() BurstParams {
	p.Limit = filledLimit(p.Limit, sluice.Limit{Count: 10, Period: time.Second})
	if p.Window == 0 {
		p.Window = p.Limit.Period
	}
	return p
}

// mostBurst bounds the units of a burst experiment, each of which is a mark in the drawing or nearly so.
const mostBurst = 10_000_000

// Check says what of p can't be run, and its bound; nil if it can.
func (p BurstParams) Check() error {
	p = p.filled()
	if err := p.Limit.Check("lab: burst"); err != nil {
		return err
	}
	if p.Window < time.Microsecond || p.Window > 366*24*time.Hour/burstWindows {
		return fmt.Errorf("lab: burst: Window %v: want 1µs to %v", p.Window, 366*24*time.Hour/burstWindows)
	}
	if n := float64(p.Limit.Burst) + limitRate(p.Limit)*burstWindows*p.Window.Seconds(); n > mostBurst {
		return fmt.Errorf("lab: burst: Limit %v: %.0f units in %v; want at most %d", p.Limit, n, burstWindows*p.Window, mostBurst)
	}
	if p.Strict && len(p.strict()) == 0 {
		return fmt.Errorf("lab: burst: Strict: Limit %v: no whole burst and rate keep %d in any %v; want a Count of at least 2", p.Limit, p.Limit.Count, p.Window)
	}
	_, err := checkAlgorithms("burst", p.Algorithms, p.Limit)
	return err
}

// burstWindows is how many windows a run lasts.
const burstWindows = 3

// strict are limits of a token bucket that let at most p.Limit.Count through in any p.Window, both ends included:
// burst + rate·window is the count.
func (p BurstParams) strict() (limits []sluice.Limit) {
	count := p.Limit.Count
	for _, burst := range []int64{1, count / 2, count - 1} {
		l := sluice.Limit{Count: count - burst, Period: p.Window, Burst: burst}
		if burst < 1 || l.Count < 1 || slices.Contains(limits, l) {
			continue
		}
		limits = append(limits, l)
	}
	return limits
}

// Burst counts what each algorithm lets through from a fresh state under endless demand: in the first second, as it
// stands. It runs in virtual time. The error is one of p.Check, or ctx's.
func Burst(ctx context.Context, p BurstParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	names, err := checkAlgorithms("burst", p.Algorithms, p.Limit)
	if err != nil {
		return Result{}, err
	}
	first := "first_" + inWords(p.Window)
	if p.Window == time.Second {
		first = "first_second"
	}
	in := "in_" + inWords(p.Window)
	b := burst{
		BurstParams: p, first: first, in: in,
		marks: Marks{
			Title: "From a fresh state, under endless demand", Caption: fmt.Sprintf("Each mark is a unit. A limit of %v; a request comes as soon as it would pass.", p.Limit),
			To: 2 * p.Window.Seconds(),
		},
		bars: Bars{
			Title: "Admitted in the " + spaced(first), Caption: "Both ends included, and at the later one windows and the log begin anew. Hatched: above the count of the limit.",
			Unit: "units", Limit: float64(p.Limit.Count), LimitName: "count",
		},
		result: Result{
			Experiment: "burst",
			Title:      fmt.Sprintf("How much of a limit of %v passes in the %s?", p.Limit, spaced(first)),
			Intro: []string{fmt.Sprintf("From a fresh state, a client takes one unit after the other, each as soon as it passes, for %v. The limit is %v.",
				burstWindows*p.Window, p.Limit)},
			Params: append(limitFields(p.Limit), Fields{{"window_s", p.Window.Seconds()}, {"strict", p.Strict}}...),
			Notes: []string{
				fmt.Sprintf(`"%s" counts both of its ends, "half open" not the later one: a token that comes back at the very end of %v is in the first and not in the second. "largest" is the most in any %v of the run. "acting" counts at the time when requests act, which only a leaky bucket makes later. "bound" is the most that the algorithm lets through in any half-open %v, whatever arrives; it keeps the limit if that is no more than the count.`, spaced(first), p.Window, p.Window, p.Window),
				"A token bucket admits up to burst + rate·t in any time t, both ends included, so its burst comes on top of its rate. " +
					"To hold any time t to a limit, choose burst + rate·t at most the limit (--strict): what the burst gains, the rate loses.",
			},
		},
	}
	for _, name := range names {
		l, err := sim.New(name, p.Limit)
		if err != nil {
			return Result{}, fmt.Errorf("lab: burst: %w", err)
		}
		if err := b.add(ctx, name, l); err != nil {
			return Result{}, err
		}
	}
	if p.Strict {
		for _, limit := range p.strict() {
			l, err := sim.New("token_bucket", limit)
			if err != nil {
				return Result{}, fmt.Errorf("lab: burst: %w", err)
			}
			if err := b.add(ctx, fmt.Sprintf("strict_burst_%d", limit.Burst), l); err != nil {
				return Result{}, err
			}
		}
	}
	b.result.Charts = []Chart{b.marks, b.bars}
	return b.result, nil
}

// burst is an experiment in the making.
type burst struct {
	BurstParams
	first, in string // the beginnings of figures' names
	marks     Marks
	bars      Bars
	result    Result
}

// mostMarks is how many marks of one limiter are drawn.
const mostMarks = 400

func (b *burst) add(ctx context.Context, name string, l sim.Limiter) error {
	window := b.Window.Microseconds()
	var once, open, closed, acted int64
	row := MarkRow{Name: name}
	c := contest{"burst", b.Limit, sim.Greedy{}, sim.Options{Duration: burstWindows * b.Window, Windows: []time.Duration{b.Window}}, nil}
	f, err := c.run(ctx, l, func(e *sim.Event) {
		n := e.Decision.Charged
		if e.At == 0 {
			once += n
		}
		if e.At < window {
			open += n
		}
		if e.At <= window {
			closed += n
		}
		if e.Acts() <= window {
			acted += n
		}
		if e.Decision.Allowed && e.Acts() <= 2*window && len(row.Marks) < mostMarks {
			mark := Mark{At: float64(e.Acts()) / 1e6}
			if e.Decision.Delay > 0 {
				mark.Kind = Delayed
			}
			row.Marks = append(row.Marks, mark)
		}
	})
	if err != nil {
		return err
	}
	w, limit := f.Windows[0], l.Limit()
	b.result.Results = append(b.result.Results, Row{name, Fields{
		{b.first, closed}, {b.first + "_half_open", open}, {"at_once", once},
		{"largest_" + b.in, w.Closed}, {"largest_" + b.in + "_half_open", w.HalfOpen}, {"acting_" + b.first, acted},
		{"rate", limitRate(limit)}, {"burst", max(limit.Burst, once)}, {"limit", b.Limit.Count},
		{"bound_" + b.in, w.Most}, {"keeps_limit", w.Most <= b.Limit.Count},
	}})
	row.Note = fmt.Sprintf("%d in the %s", closed, spaced(b.first))
	b.marks.Rows = append(b.marks.Rows, row)
	b.bars.Bars = append(b.bars.Bars, Bar{name, float64(closed)})
	if b.Progress != nil && f.Asked > 1_000_000 {
		b.Progress(fmt.Sprintf("%s: %d decisions", name, f.Asked))
	}
	return nil
}
