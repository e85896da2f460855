package main

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/inprocess"
	"github.com/sluice-go/sluice/bench/load"
	"github.com/sluice-go/sluice/bench/report"
)

// bar is a promise about ours at a work, against a contender.
type bar struct {
	work, what string
	metric     load.Metric
	unit       string
	than       string
	least      float64 // the ratio must be at least this, if not 0,
	most       float64 // and else at most this
}

// bars are what the module promises of its store on Redis.
var bars = []bar{
	{"many-128", "decisions/s", load.Rate, "", contender.Base, 5, 0},
	{"many-128", "p99", load.P99, " µs", contender.Base, 0, 0.4},
	{"many-128", "Redis CPU per decision", load.RedisCPU, " µs", contender.Base, 0, 0.4},
	{"hot-128", "decisions/s", load.Rate, "", contender.Base, 15, 0},
	{"denied-128", "decisions/s", load.Rate, "", contender.Base, 100, 0},
	{"denied-128", "share of a core that Redis takes", load.RedisBusy, "", contender.Base, 0, 0.05},
	{"hot-1", "decisions/s", load.Rate, "", contender.Base, 1.1, 0},
	{"hot-1", "p50 against EVALSHA of return 1", load.P50, " µs", contender.Eval, 0, 1.6},
	{"many-1", "decisions/s", load.Rate, "", contender.Base, 1.1, 0},
	{"many-1", "p50 against EVALSHA of return 1", load.P50, " µs", contender.Eval, 0, 1.6},
	{"many-512", "p99", load.P99, " µs", contender.Base, 0, 0.4},
}

// judge writes the bar and tells whether a ratio meets it.
func (b *bar) judge(ratio float64) (text string, holds bool) {
	if b.least != 0 {
		return fmt.Sprintf("at least %v", b.least), ratio >= b.least
	}
	return fmt.Sprintf("at most %v", b.most), ratio <= b.most
}

// rows are the promises that were measured.
func (s *session) rows() []report.Row {
	var rows []report.Row
	for _, b := range bars {
		i := slices.IndexFunc(s.results, func(r load.Result) bool { return r.Work.Name == b.work })
		if i >= 0 && len(s.results[i].Rounds[contender.Main]) > 0 && len(s.results[i].Rounds[b.than]) > 0 {
			rows = append(rows, b.row(s.results[i]))
		}
	}
	return append(rows, localRows(s.report.Local)...)
}

// fewErrors is the share of calls that may fail: ours give up after 50 ms, where the peers wait for 5 s.
const fewErrors = 0.001

// row is a bar set against what was measured. It does not hold if calls of ours failed, but for a few.
func (b *bar) row(r load.Result) report.Row {
	row := report.Row{
		Work: r.Work.Text + ": " + b.what, Unit: b.unit, Than: b.than,
		Ours: r.Median(contender.Main, b.metric), Peer: r.Median(b.than, b.metric), Ratio: r.Ratio(contender.Main, b.than, b.metric),
	}
	row.Bar, row.Holds = b.judge(row.Ratio)
	if r.Medians(contender.Main).Errors > fewErrors {
		row.Bar, row.Holds = row.Bar+", hardly an error", false
	}
	return row
}

// localRows are the promises of the store in process: faster than the fastest keyed peer, and no allocations.
func localRows(times []inprocess.Time) []report.Row {
	var rows []report.Row
	for _, ours := range times {
		peer, ok := report.Fastest(times, ours.Goroutines)
		if ours.Name != inprocess.Main || !ok {
			continue
		}
		work := fmt.Sprintf("in process, 10,000 keys, %d at once", ours.Goroutines)
		ratio := load.Ratio(ours.Rounds, peer.Rounds)
		rows = append(rows, report.Row{
			Work: work + ": time, against " + peer.Name, Unit: " ns", Than: peer.Name,
			Ours: ours.Nanos, Peer: peer.Nanos, Ratio: ratio, Bar: "below 1", Holds: ratio < 1,
		}, report.Row{
			Work: work + ": allocations", Than: peer.Name,
			Ours: report.Tidy(ours.Allocs), Peer: report.Tidy(peer.Allocs), Ratio: report.Tidy(ours.Allocs), Bar: "0", Holds: report.Tidy(ours.Allocs) == 0,
		})
	}
	return rows
}

// others sets ours against the fastest peer at each work, the base left out.
func (s *session) others() []report.Row {
	var rows []report.Row
	for _, k := range s.report.Works {
		var ours, best report.Contender
		for _, c := range k.Contenders {
			switch {
			case c.Name == contender.Main:
				ours = c
			case c.Kind == contender.Peer && c.Name != contender.Base && c.Figures.Rate > best.Figures.Rate:
				best = c
			}
		}
		i := slices.IndexFunc(s.results, func(r load.Result) bool { return r.Work.Name == k.Name })
		if i >= 0 && ours.Name != "" && best.Name != "" {
			rows = append(rows, report.Row{
				Work: k.Text + ": decisions/s", Than: best.Name, Ours: ours.Figures.Rate, Peer: best.Figures.Rate,
				Ratio: s.results[i].Ratio(ours.Name, best.Name, load.Rate),
			})
		}
	}
	return rows
}
