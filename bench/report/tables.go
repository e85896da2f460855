package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/bench/inprocess"
	"github.com/sluice-go/sluice/bench/load"
)

// bars is the table of promises.
func (r *Report) bars() *table {
	t := &table{head: []string{"work", "ours", "peer", "ratio", "bar", "holds"}}
	for _, row := range r.Rows {
		holds := "NO"
		if row.Holds {
			holds = "yes"
		}
		t.add(row.Work, number(row.Ours)+row.Unit, number(row.Peer)+row.Unit, number(row.Ratio), row.Bar, holds)
	}
	return t
}

// others is the table of the fastest other peers.
func (r *Report) others() *table {
	t := &table{head: []string{"work", "ours", "fastest other peer", "", "ratio"}}
	for _, row := range r.Others {
		t.add(row.Work, number(row.Ours)+row.Unit, row.Than, number(row.Peer)+row.Unit, number(row.Ratio))
	}
	return t
}

// speed is what each contender did, and costs what a decision cost. Rates are set against the first contender's.
func (k *Work) speed() *table {
	base := ""
	if len(k.Contenders) > 0 {
		base = "×" + k.Contenders[0].Name
	}
	t := &table{head: []string{"", "decisions/s", base, "p50 µs", "p99 µs", "allowed"}}
	for _, c := range k.Contenders {
		f := c.Figures
		t.add(c.Name, number(f.Rate), number(c.Times), number(f.P50), number(f.P99), percent(f.Allowed))
	}
	return t
}

func (k *Work) costs() *table {
	t := &table{head: []string{"", "allocs", "bytes", "client CPU µs", "Redis CPU µs", "Redis busy", "script calls", "µs a call", "sent B", "received B"}}
	for _, c := range k.Contenders {
		f := c.Figures
		t.add(c.Name, number(f.Allocs), number(f.Bytes), number(f.ClientCPU), number(f.RedisCPU), percent(f.RedisBusy),
			number(f.Scripts), number(f.UsecPerCall), number(f.BytesIn), number(f.BytesOut))
	}
	return t
}

// faults tells of calls that ended in errors.
func (k *Work) faults() (lines []string) {
	for _, c := range k.Contenders {
		if f := c.Figures; f.Errors > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s of the calls failed, such as: %.100s", c.Name, percent(f.Errors), f.FirstErrorText))
		}
	}
	return lines
}

// algorithms is what the server takes for a script call of each algorithm, with its ratio to the base's.
func (r *Report) algorithms() *table {
	t := &table{head: []string{"µs a script call"}}
	cells := map[string][]string{}
	var names []string
	for _, k := range r.Algorithms {
		_, text, _ := strings.Cut(k.Text, ", ")
		t.head = append(t.head, strings.TrimSuffix(text, ", by algorithm"), "×"+k.Contenders[0].Name)
		for _, c := range k.Contenders {
			if cells[c.Name] == nil {
				names = append(names, c.Name)
			}
			cells[c.Name] = append(cells[c.Name], number(c.Figures.UsecPerCall), number(c.Figures.UsecPerCall/k.Contenders[0].Figures.UsecPerCall))
		}
	}
	for _, name := range names {
		t.add(append([]string{name}, cells[name]...)...)
	}
	return t
}

// sizes is the growth of keys: a row for each number of them.
func (r *Report) sizes() *table {
	t := &table{head: []string{"keys"}}
	for i, k := range r.Sizes {
		cells := []string{load.Thousands(k.Keys)}
		for _, c := range k.Contenders {
			if i == 0 {
				t.head = append(t.head, c.Name+" decisions/s", "p99 µs")
			}
			cells = append(cells, number(c.Figures.Rate), number(c.Figures.P99))
		}
		t.add(cells...)
	}
	return t
}

func (r *Report) traffic() *table {
	t := &table{head: []string{"beside the application", "GET p50 µs", "GET p99 µs", "GETs/s", "decisions/s"}}
	for _, x := range r.Traffic {
		t.add(x.Name, number(x.P50), number(x.P99), number(x.Reads), number(x.Rate))
	}
	return t
}

func (r *Report) memory() *table {
	t := &table{head: []string{"", "bytes a key in Redis"}}
	for _, m := range r.Memory {
		t.add(m.Name, number(m.Bytes))
	}
	return t
}

// local is a row for each contender in process, with columns for each number of goroutines.
func (r *Report) local() *table {
	t := &table{head: []string{""}}
	rows := map[string][]string{}
	var names []string
	for _, x := range r.Local {
		if rows[x.Name] == nil {
			names = append(names, x.Name)
			rows[x.Name] = []string{x.Name}
			if !x.Keyed {
				rows[x.Name][0] += " (not keyed)"
			}
		}
		rows[x.Name] = append(rows[x.Name], number(x.Nanos), number(Tidy(x.Allocs)), number(Tidy(x.Bytes)))
		if column := fmt.Sprintf("ns, %d at once", x.Goroutines); !slices.Contains(t.head, column) {
			t.head = append(t.head, column, "allocs", "bytes")
		}
	}
	for _, name := range names {
		t.add(rows[name]...)
	}
	return t
}

// Tidy leaves out what the runtime and the timers of a round allocate, spread over its decisions.
func Tidy(perDecision float64) float64 {
	if perDecision < 0.01 {
		return 0
	}
	return perDecision
}

func (r *Report) localMemory() *table {
	t := &table{head: []string{"bytes a key in process, keys:"}}
	var names []string
	cells := map[string][]string{}
	for _, m := range r.LocalMem {
		if column := load.Thousands(m.Keys); !slices.Contains(t.head, column) {
			t.head = append(t.head, column)
		}
		if cells[m.Name] == nil {
			names = append(names, m.Name)
		}
		cells[m.Name] = append(cells[m.Name], strconv.FormatFloat(m.Bytes, 'f', 0, 64))
	}
	for _, name := range names {
		t.add(append([]string{name}, cells[name]...)...)
	}
	return t
}

// Fastest returns the keyed peer in process that takes the least, of so many goroutines.
func Fastest(times []inprocess.Time, goroutines int) (peer inprocess.Time, ok bool) {
	for _, x := range times {
		if x.Keyed && x.Goroutines == goroutines && x.Name != inprocess.Main && (!ok || x.Nanos < peer.Nanos) {
			peer, ok = x, true
		}
	}
	return peer, ok
}

func percent(share float64) string { return number(share*100) + "%" }
