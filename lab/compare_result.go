package lab

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/lab/sim"
)

// comparison is a result of Compare in the making.
type comparison struct {
	CompareParams
	result  Result
	panels  Panels
	marks   Marks
	marked  bool // the marks are few enough to be drawn
	largest Bars
	waits   Bars

	width  float64 // of a bin, µs
	shown  int64   // the marks' time, µs
	panel  Panel   // of the algorithm that runs
	row    MarkRow
	acting []int64 // units by bin
	later  bool    // something is held
}

// mostDrawn is how many marks an algorithm may have.
const mostDrawn = 300

func newComparison(p CompareParams) *comparison {
	d := &comparison{CompareParams: p, width: max(1, float64(p.Duration.Microseconds())/bins), marked: true}
	d.shown = min(p.Duration, 4*p.Limit.Period).Microseconds()
	scope := ""
	if p.Subjects > 1 && !p.OneKey {
		scope = " each"
	}
	bin := time.Duration(d.width) * time.Microsecond
	d.panels = Panels{
		Title: "What each lets through", Caption: fmt.Sprintf("%s. A bar is %v.", p.described(), bin.Round(time.Microsecond)),
		Y: "units per bar", To: p.Duration.Seconds(),
	}
	if scope == "" {
		d.panels.Limit = limitRate(p.Limit) * bin.Seconds()
		d.panels.LimitName = "rate of the limit"
	}
	d.marks = Marks{
		Title: fmt.Sprintf("The first %v, one by one", µsOf(d.shown)), Caption: "What a leaky bucket admits leaves evenly, and later.",
		To: float64(d.shown) / 1e6,
	}
	period := inWords(p.Limit.Period)
	d.largest = Bars{
		Title: fmt.Sprintf("Most admitted in any %s", period), Caption: "By one key, in any half-open time of that length. Hatched: above the count of the limit.",
		Unit: "units", Limit: float64(p.Limit.Count), LimitName: "count",
	}
	d.waits = Bars{Title: "Wait of the slowest 1 %", Caption: "From a request's first try until it acts: the 99th percentile of those admitted.", Unit: "ms"}
	d.result = Result{
		Experiment: "compare",
		Title:      fmt.Sprintf("What algorithms make of the same requests under %v%s", p.Limit, scope),
		Intro:      []string{fmt.Sprintf("In %v: %s. The limit is %v%s.", p.Duration, p.described(), p.Limit, scope)},
		Params:     append(p.fields(), Fields{{"bin_s", d.width / 1e6}}...),
		Notes: []string{
			fmt.Sprintf(`"asked" is tries: requests and retries. "lost" requests never passed. A wait is from a request's first try until it acts. "largest in %[1]s" is the most that one key admitted in any half-open %[1]s, "acting" what acted, and "bound" what is promised whatever arrives.`, period),
			`"wasted" is units that were refused although the limit's rate, over the whole run, had room for them. "fairness" is Jain's index of what the subjects got: 1 if all got the same, 1/n if one of n got all. ` +
				`"calls" are the commands that a script runs inside Redis for a decision, on average; each decision is one command sent. The exact log is an oracle: its state grows with the count.`,
		},
	}
	return d
}

func µsOf(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// described is the arrivals in words.
func (p CompareParams) described() string {
	var s string
	switch p.Shape {
	case "constant":
		s = fmt.Sprintf("%g requests a second, evenly", p.Rate)
	case "poisson":
		s = fmt.Sprintf("%g requests a second on average, at random", p.Rate)
	case "bursts":
		s = fmt.Sprintf("%d requests at once, each %v", p.Size, p.Every)
	case "on-off":
		s = fmt.Sprintf("%g requests a second for %v, none for %v", p.Rate, p.On, p.Off)
	case "boundary":
		s = fmt.Sprintf("%g requests a second in the %v around each window's end", p.Rate, 2*p.Around)
	case "diurnal":
		s = fmt.Sprintf("%g requests a second on average, up to %g times that and down each %v", p.Rate, p.Peak, p.Day)
	case "trace":
		return fmt.Sprintf("%d requests of %d subjects, as recorded", len(p.Trace.Requests), len(p.Trace.Names))
	}
	switch {
	case p.Subjects > 1 && p.Skew > 0:
		s += fmt.Sprintf(", of %d subjects with a skew of %g", p.Subjects, p.Skew)
	case p.Subjects > 1:
		s += fmt.Sprintf(", of %d subjects", p.Subjects)
	}
	if p.Subjects > 1 && p.OneKey {
		s += " who share the limit"
	}
	switch {
	case p.MostCost > max(1, p.Cost):
		s += fmt.Sprintf(", %d to %d units each", max(1, p.Cost), p.MostCost)
	case p.Cost > 1:
		s += fmt.Sprintf(", %d units each", p.Cost)
	}
	switch p.Retry {
	case "polite":
		s += "; who is denied comes back after Retry-After"
	case "rude":
		s += "; who is denied comes back at once"
	case "backoff":
		s += "; who is denied backs off, at random"
	}
	return s
}

func (p CompareParams) fields() Fields {
	f := append(limitFields(p.Limit), Fields{{"arrivals", p.Shape}}...)
	switch p.Shape {
	case "bursts":
		f = append(f, Fields{{"size", p.Size}, {"every_s", p.Every.Seconds()}}...)
	case "on-off":
		f = append(f, Fields{{"rate", p.Rate}, {"on_s", p.On.Seconds()}, {"off_s", p.Off.Seconds()}}...)
	case "boundary":
		f = append(f, Fields{{"rate", p.Rate}, {"around_s", p.Around.Seconds()}}...)
	case "diurnal":
		f = append(f, Fields{{"rate", p.Rate}, {"peak", p.Peak}, {"day_s", p.Day.Seconds()}}...)
	case "trace":
		f = append(f, Fields{{"trace_requests", len(p.Trace.Requests)}, {"trace_subjects", len(p.Trace.Names)}}...)
	default:
		f = append(f, Fields{{"rate", p.Rate}}...)
	}
	if p.Shape != "trace" {
		f = append(f, Fields{{"subjects", max(1, p.Subjects)}, {"skew", p.Skew}, {"cost", max(1, p.Cost)}, {"most_cost", max(1, p.Cost, p.MostCost)}}...)
	}
	f = append(f, Fields{{"one_key", p.OneKey}, {"retry", p.Retry}}...)
	if p.Retry != "none" {
		c := p.options().Clients.Filled()
		f = append(f, Fields{{"tries", c.Tries}}...)
		if p.Retry != "polite" {
			f = append(f, Fields{{"pause_ms", ms(c.Pause)}}...)
		}
	}
	return append(f, Fields{{"duration_s", p.Duration.Seconds()}, {"seed", p.Seed}}...)
}

// watch returns what follows one algorithm's decisions.
func (d *comparison) watch(name string) func(*sim.Event) {
	d.panel = Panel{Name: name, Admitted: make([]float64, bins), Denied: make([]float64, bins)}
	d.row, d.acting, d.later = MarkRow{Name: name}, make([]int64, bins), false
	return func(e *sim.Event) {
		bin := min(bins-1, int(float64(e.At)/d.width))
		mark := Mark{At: float64(e.Acts()) / 1e6}
		if e.Decision.Allowed {
			d.panel.Admitted[bin] += float64(e.N)
			if acts := int(float64(e.Acts()) / d.width); acts < bins {
				d.acting[acts] += e.N
			}
			if e.Decision.Delay > 0 {
				d.later, mark.Kind = true, Delayed
			}
		} else {
			d.panel.Denied[bin] += float64(e.N)
			mark.Kind = Denied
		}
		if d.marked && e.Acts() <= d.shown {
			d.row.Marks = append(d.row.Marks, mark)
			d.marked = len(d.row.Marks) <= mostDrawn
		}
	}
}

// done takes the figures of the algorithm that has run.
func (d *comparison) done(name string, f sim.Figures) {
	period := inWords(d.Limit.Period)
	w := f.Windows[0]
	acting := d.panel.Admitted
	if d.later {
		acting = make([]float64, bins)
		for i, n := range d.acting {
			acting[i] = float64(n)
		}
		d.panel.Acting = acting
	}
	d.result.Results = append(d.result.Results, Row{name, Fields{
		{"requests", f.Requests}, {"asked", f.Asked}, {"admitted", f.Admitted}, {"denied", f.Denied}, {"retries", f.Retries}, {"lost", f.Lost},
		{"units_asked", f.UnitsAsked}, {"units_admitted", f.UnitsAdmitted}, {"wasted", f.Wasted},
		{"wait_mean_ms", ms(f.WaitMean)}, {"wait_p50_ms", ms(f.WaitP50)}, {"wait_p99_ms", ms(f.WaitP99)}, {"wait_max_ms", ms(f.WaitMost)},
		{"largest_in_" + period, w.HalfOpen}, {"largest_in_" + period + "_closed", w.Closed}, {"acting_in_" + period, w.Acting},
		{"bound_in_" + period, w.Most}, {"limit", d.Limit.Count},
		{"fairness", f.Fairness}, {"subjects", f.Subjects},
		{"state_bytes", f.StateBytes}, {"commands_per_decision", 1}, {"calls_per_decision", f.Calls},
		{"admitted_per_bin", d.panel.Admitted}, {"denied_per_bin", d.panel.Denied}, {"acting_per_bin", acting},
	}})
	d.panel.Note = fmt.Sprintf("%d admitted, %d denied · most in any %s: %d", f.Admitted, f.Denied, period, w.HalfOpen)
	d.panels.Panels = append(d.panels.Panels, d.panel)
	d.row.Note = ""
	d.marks.Rows = append(d.marks.Rows, d.row)
	d.largest.Bars = append(d.largest.Bars, Bar{name, float64(w.HalfOpen)})
	d.waits.Bars = append(d.waits.Bars, Bar{name, ms(f.WaitP99)})
}
