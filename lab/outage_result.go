package lab

import (
	"fmt"
	"io"
)

// Result is r in the form that all experiments share: CSV has a line for each second of each variant.
func (r OutageResult) Result() Result {
	p := &r.Params
	shared := Result{
		Experiment: "outage",
		Title:      "What a fleet admits while Redis goes and comes",
		Server:     r.Server,
		Intro: []string{fmt.Sprintf("%d instances have one limit of %v together, and are asked for %g times that%s. Redis is away (%s) %s of %v. "+
			"The bound is burst + rate·t = %.0f, what one bucket would admit at most.", p.Instances, p.Limit, p.Demand, p.skewed(), p.How, list(p.Outages()), p.Duration, p.bound())},
		Params: p.fields(),
		Notes: []string{`"ratio" is what was admitted, of the bound. "lost" is what was asked, would have kept the bound, and was denied. ` +
			`"worst second" is after the first, which has the burst.`},
		Charts: []Chart{ChartFunc(r.WriteSVG)},
	}
	for _, v := range r.Results {
		shared.Results = append(shared.Results, Row{v.Name, v.figures()})
		for s, n := range v.PerSecond {
			shared.Lines = append(shared.Lines, Row{v.Name, Fields{
				{"mode", v.Mode}, {"share", v.Share}, {"carry", v.Carry},
				{"second", s}, {"redis_away", p.away(s)}, {"limit", p.rate()}, {"admitted", n},
			}})
		}
	}
	return shared
}

// WriteCSV writes a line for each second of each variant.
func (r OutageResult) WriteCSV(w io.Writer) error { return r.Result().WriteCSV(w) }

// WriteJSON writes one object: experiment, server, params, results. Times are in seconds, as numbers.
func (r OutageResult) WriteJSON(w io.Writer) error { return r.Result().WriteJSON(w) }

func (p *OutageParams) fields() Fields {
	outages := [][2]float64{}
	for _, o := range p.Outages() {
		outages = append(outages, [2]float64{o.From.Seconds(), o.To.Seconds()})
	}
	skew := p.Skew
	if skew == nil {
		skew = []float64{}
	}
	return Fields{
		{"instances", p.Instances}, {"limit_count", p.Limit.Count}, {"limit_period_s", p.Limit.Period.Seconds()}, {"burst", p.Limit.Burst},
		{"demand", p.Demand}, {"skew", skew}, {"bunch", p.Bunch}, {"seed", p.Seed},
		{"duration_s", p.Duration.Seconds()}, {"away_from_s", p.AwayFrom.Seconds()}, {"away_to_s", p.AwayTo.Seconds()},
		{"flap_s", p.Flap.Seconds()}, {"flap_for_s", p.FlapFor.Seconds()}, {"outages_s", outages},
		{"how", p.How}, {"timeout_s", p.Timeout.Seconds()},
	}
}

func (v OutageVariant) figures() Fields {
	return Fields{
		{"mode", v.Mode}, {"share", v.Share}, {"carry", v.Carry},
		{"asked", v.Asked}, {"admitted", v.Admitted}, {"bound", v.Bound}, {"ratio", v.Ratio}, {"lost", v.Lost},
		{"worst_second", v.WorstSecond}, {"worst_at_s", v.WorstAt}, {"per_second", v.PerSecond},
		{"shared", v.Shared}, {"local", v.Local}, {"assumed", v.Assumed}, {"errors", v.Errors}, {"slowest_ms", v.Slowest},
	}
}
