package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/inprocess"
	"github.com/sluice-go/sluice/bench/load"
	"github.com/sluice-go/sluice/bench/report"
)

// The program measures a work, prints its bars, and writes them as JSON.
func TestRunOneWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "latest.json")
	var out, err strings.Builder
	code := run(t.Context(), strings.Fields("--only many-128 --contenders sluice --rounds 2 --round 30ms --no-pin --out "+path), &out, &err)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, err.String())
	}
	for _, want := range []string{"redis_rate", "128 callers, 10,000 keys: decisions/s", "at least 5", "Not pinned"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if !strings.Contains(err.String(), "left: many-128") {
		t.Errorf("no progress: %q", err.String())
	}
	text, e := os.ReadFile(path)
	if e != nil {
		t.Fatal(e)
	}
	var got latest
	if e := json.Unmarshal(text, &got); e != nil {
		t.Fatal(e)
	}
	if got.Machine.Cores == 0 || got.Date == "" || len(got.Rows) != 3 || !strings.HasPrefix(got.Rows[0].Bar, "at least 5") || got.Rows[0].Ratio <= 0 {
		t.Errorf("latest.json: %+v", got)
	}
}

// Processes are pinned where they can be, and let go afterwards.
func TestRunPinned(t *testing.T) {
	var out, err strings.Builder
	if code := run(t.Context(), strings.Fields("--only hot-1 --contenders PING --rounds 1 --round 20ms --json"), &out, &err); code != 0 {
		t.Fatalf("exit %d: %s", code, err.String())
	}
	var r report.Report
	if e := json.Unmarshal([]byte(out.String()), &r); e != nil {
		t.Fatal(e)
	}
	if !strings.Contains(strings.ToLower(r.Pinned), "pinned") || len(r.Works) != 1 || len(r.Works[0].Contenders) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestMisuse(t *testing.T) {
	for _, args := range []string{
		"--only nothing", "--contenders nobody", "--rounds -1", "--round -1s", "--docs x --only hot-1", "--bogus", "extra",
	} {
		var out, err strings.Builder
		if code := run(t.Context(), strings.Fields(args), &out, &err); code != 2 || !strings.Contains(err.String(), "bench: ") {
			t.Errorf("%s: exit %d, %q, want 2 and why", args, code, err.String())
		}
	}
}

func TestHelpAndList(t *testing.T) {
	for args, want := range map[string]string{"--help": "go run . --only many-128", "--list": "denied-512"} {
		var out, err strings.Builder
		if code := run(t.Context(), []string{args}, &out, &err); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out.String(), err.String())
		}
	}
}

// Every bar names a work of the short form and contenders that there are.
func TestBarsAreMeasured(t *testing.T) {
	var o options
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	for _, b := range bars {
		if !slices.ContainsFunc(o.works(), func(w load.Work) bool { return w.Name == b.work }) {
			t.Errorf("the short form lacks %s", b.work)
		}
		if !slices.ContainsFunc(o.contenders(), func(c contender.Contender) bool { return c.Name == b.than }) {
			t.Errorf("the short form lacks %s", b.than)
		}
		if (b.least == 0) == (b.most == 0) {
			t.Errorf("%s, %s: want a bar on one side", b.work, b.what)
		}
	}
}

func TestBarRow(t *testing.T) {
	least, most := bar{metric: load.Rate, than: "peer", least: 5}, bar{metric: load.P99, than: "peer", most: 0.4}
	result := func(rate, p99, errors float64) load.Result {
		return load.Result{Rounds: map[string][]load.Figures{
			contender.Main: {{Rate: rate, P99: p99, Errors: errors}}, "peer": {{Rate: 10, P99: 10}},
		}}
	}
	for _, tt := range []struct {
		name  string
		b     bar
		r     load.Result
		ratio float64
		holds bool
	}{
		{"at the least", least, result(50, 0, 0), 5, true},
		{"below the least", least, result(49, 0, 0), 4.9, false},
		{"at the most", most, result(0, 4, 0), 0.4, true},
		{"above the most", most, result(0, 4.1, 0), 0.41, false},
		{"fast, with errors", least, result(500, 0, 0.01), 50, false},
		{"fast, with hardly an error", least, result(500, 0, 0.0005), 50, true},
	} {
		if row := tt.b.row(tt.r); row.Holds != tt.holds || row.Ratio < tt.ratio-1e-9 || row.Ratio > tt.ratio+1e-9 {
			t.Errorf("%s: ratio %v, holds %v, want %v and %v", tt.name, row.Ratio, row.Holds, tt.ratio, tt.holds)
		}
	}
}

func TestLocalRows(t *testing.T) {
	times := []inprocess.Time{
		{Name: inprocess.Main, Keyed: true, Goroutines: 1, Nanos: 100, Rounds: []float64{100}, Allocs: 0.001},
		{Name: "slow", Keyed: true, Goroutines: 1, Nanos: 300, Rounds: []float64{300}},
		{Name: "fast", Keyed: true, Goroutines: 1, Nanos: 80, Rounds: []float64{80}},
		{Name: "not keyed", Goroutines: 1, Nanos: 10, Rounds: []float64{10}},
	}
	rows := localRows(times)
	if len(rows) != 2 || rows[0].Than != "fast" || rows[0].Holds || rows[0].Ratio != 1.25 || !rows[1].Holds || rows[1].Ratio != 0 {
		t.Errorf("%+v: want 1.25 of the fastest keyed peer, which fails, and no allocations", rows)
	}
	times[0].Allocs = 1
	if rows := localRows(times); rows[1].Holds {
		t.Error("an allocation was let pass")
	}
}

// --strict turns a bar that does not hold into exit 1.
func TestStrict(t *testing.T) {
	r := report.Report{Rows: []report.Row{{Holds: true}, {Holds: false}}}
	if r.Holds() {
		t.Error("a report with a failed bar holds")
	}
	r.Rows = r.Rows[:1]
	if !r.Holds() {
		t.Error("a report without a failed bar does not hold")
	}
}
