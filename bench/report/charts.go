package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/inprocess"
)

// chart is a file that the page shows.
type chart struct {
	file string
	draw func(w io.Writer) error
}

// charts are those that the report has figures for.
func (r *Report) charts() []chart {
	var all []chart
	where := fmt.Sprintf("%s, %d cores, %s, %s", r.Machine.CPU, r.Machine.Cores, r.Machine.Redis, r.Date)
	if len(r.Works) > 0 {
		all = append(all, chart{"performance-rates.svg", func(w io.Writer) error {
			return drawBars(w, "128 callers: decisions a second", where, "decisions/s", false, r.rateGroups())
		}})
	}
	if len(r.Sizes) > 0 {
		all = append(all, chart{"performance-callers.svg", func(w io.Writer) error {
			return drawLines(w, "10,000 keys: decisions a second by callers", where, "callers", "decisions/s", r.byCallers(func(c Contender) float64 { return c.Figures.Rate }))
		}}, chart{"performance-latency.svg", func(w io.Writer) error {
			return drawLines(w, "10,000 keys: p99 by callers", where, "callers", "p99, µs", r.byCallers(func(c Contender) float64 { return c.Figures.P99 }))
		}}, chart{"performance-keys.svg", func(w io.Writer) error {
			return drawLines(w, "128 callers: decisions a second by keys", where, "keys", "decisions/s", r.byKeys())
		}})
	}
	if len(r.Local) > 0 {
		all = append(all, chart{"performance-local.svg", func(w io.Writer) error {
			return drawBars(w, "In process: time of a decision", where, "ns", true, r.localGroups())
		}})
	}
	return all
}

func (r *Report) rateGroups() []group {
	var groups []group
	for _, k := range r.Works {
		if k.Callers != 128 {
			continue
		}
		_, name, _ := strings.Cut(k.Text, ", ")
		g := group{name: name}
		for _, c := range k.Contenders {
			g.bars = append(g.bars, bar{c.Name, c.Figures.Rate, c.Name == contender.Main})
		}
		groups = append(groups, g)
	}
	return groups
}

// byCallers is a curve for each contender over the works with 10,000 keys, ours first.
func (r *Report) byCallers(value func(Contender) float64) []series {
	shown := []string{contender.Main, contender.Base, "ulule", "rueidis", contender.Eval}
	curves := make([]series, len(shown))
	for i, name := range shown {
		curves[i].name = name
	}
	for _, k := range r.Works {
		for _, c := range k.Contenders {
			if i := slices.Index(shown, c.Name); i >= 0 && k.Keys == 10_000 {
				curves[i].x, curves[i].y = append(curves[i].x, float64(k.Callers)), append(curves[i].y, value(c))
			}
		}
	}
	return curves
}

func (r *Report) byKeys() []series {
	curves := []series{{name: contender.Main}, {name: contender.Base}}
	for _, k := range r.Sizes {
		for _, c := range k.Contenders {
			for i := range curves {
				if curves[i].name == c.Name {
					curves[i].x, curves[i].y = append(curves[i].x, float64(k.Keys)), append(curves[i].y, c.Figures.Rate)
				}
			}
		}
	}
	return curves
}

func (r *Report) localGroups() []group {
	var groups []group
	for _, x := range r.Local {
		name := fmt.Sprintf("%d at once", x.Goroutines)
		if len(groups) == 0 || groups[len(groups)-1].name != name {
			groups = append(groups, group{name: name})
		}
		g := &groups[len(groups)-1]
		title := x.Name
		if !x.Keyed {
			title += " (not keyed)"
		}
		g.bars = append(g.bars, bar{title, x.Nanos, x.Name == inprocess.Main})
	}
	return groups
}
