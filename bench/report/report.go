// Package report writes what was measured: as tables for a terminal, as JSON, and as a page with charts.
package report

import (
	"time"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/inprocess"
	"github.com/sluice-go/sluice/bench/load"
)

// Report is everything that a run measured. Parts that were left out are empty.
type Report struct {
	Machine Machine       `json:"machine"`
	Date    string        `json:"date"` // YYYY-MM-DD
	Command string        `json:"command"`
	Took    time.Duration `json:"took_ns"`
	Rounds  int           `json:"rounds"`
	Round   time.Duration `json:"round_ns"`
	Pinned  string        `json:"pinned"` // how processes were put on cores
	Rows    []Row         `json:"rows"`
	Others  []Row         `json:"others,omitempty"` // against the fastest peer but the base; nothing is promised of these

	Works      []Work             `json:"works,omitempty"`
	Forms      *Work              `json:"eval_against_evalsha,omitempty"`
	Algorithms []Work             `json:"algorithms,omitempty"`
	Sizes      []Work             `json:"growth_of_keys,omitempty"`
	Cluster    *Work              `json:"cluster,omitempty"`
	Traffic    []load.Traffic     `json:"application,omitempty"`
	Memory     []Memory           `json:"redis_memory,omitempty"`
	Local      []inprocess.Time   `json:"in_process,omitempty"`
	LocalMem   []inprocess.Memory `json:"in_process_memory,omitempty"`
}

// Machine says where it was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Go     string `json:"go"`
	Redis  string `json:"redis"`
}

// Row is one promise and what was measured of it.
type Row struct {
	Work  string  `json:"work"`
	Ours  float64 `json:"ours"`
	Peer  float64 `json:"peer"`
	Ratio float64 `json:"ratio"` // ours over the peer's
	Bar   string  `json:"bar"`   // what the ratio has to be
	Holds bool    `json:"holds"`
	Unit  string  `json:"unit"` // of ours and the peer's
	Than  string  `json:"than"` // the peer
}

// Work is one work with every contender's medians.
type Work struct {
	Name       string      `json:"name"`
	Text       string      `json:"text"`
	Callers    int         `json:"callers"`
	Keys       int         `json:"keys"`
	Contenders []Contender `json:"contenders"`
}

// Contender is one contender's medians at a work.
type Contender struct {
	Name    string         `json:"name"`
	Kind    contender.Kind `json:"-"`
	Times   float64        `json:"times_base"` // its rate over the base's, median of the rounds' ratios
	Figures load.Figures   `json:"figures"`
}

// Memory is what a key takes in Redis.
type Memory struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes_per_key"`
}

// NewWork takes the medians of a result, in the order of the contenders; rates are set against the base's.
func NewWork(r load.Result, contenders []contender.Contender, base string) Work {
	k := Work{Name: r.Work.Name, Text: r.Work.Text, Callers: r.Work.Callers, Keys: r.Work.Keys}
	for _, c := range contenders {
		k.Contenders = append(k.Contenders, Contender{
			Name: c.Name, Kind: c.Kind, Times: r.Ratio(c.Name, base, load.Rate), Figures: r.Medians(c.Name),
		})
	}
	return k
}

// Holds tells whether every bar holds.
func (r *Report) Holds() bool {
	for _, row := range r.Rows {
		if !row.Holds {
			return false
		}
	}
	return true
}
