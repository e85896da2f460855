package lab

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab/sim"
)

var update = flag.Bool("update", false, "rewrite the figures and drawings of docs/algorithms.md; read them in review")

const (
	docsPage = "../docs/algorithms.md"
	docsDir  = "../docs/lab"
)

// documented are the results that docs/algorithms.md shows.
type documented struct{ boundary, burst, compare Result }

func runDocumented(t *testing.T) (d documented) {
	t.Helper()
	must := func(r Result, err error) Result {
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	d.boundary = must(Boundary(t.Context(), BoundaryParams{}))
	d.burst = must(Burst(t.Context(), BurstParams{Strict: true}))
	d.compare = must(Compare(t.Context(), CompareParams{}))
	return d
}

// pulsed is an algorithm alone under requests that come and go.
func pulsed(t *testing.T, name string) Panels {
	t.Helper()
	r, err := Compare(t.Context(), CompareParams{
		Algorithms: []string{name}, Shape: "on-off", Rate: 30, On: 2 * time.Second, Off: 1500 * time.Millisecond, Duration: 12 * time.Second,
		Limit: sluice.Limit{Count: 10, Period: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	panels := r.Charts[0].(Panels)
	panels.Title = fmt.Sprintf("The %s under requests that come and go", spaced(name))
	return panels
}

// drawings are the files in docsDir.
func (d documented) drawings(t *testing.T) map[string]Chart {
	charts := map[string]Chart{
		"boundary.svg": d.boundary.Charts[0], "burst.svg": d.burst.Charts[0],
		"compare.svg": d.compare.Charts[0], "departures.svg": d.compare.Charts[1], "waits.svg": d.compare.Charts[3],
	}
	for _, name := range sim.Algorithms() {
		charts[name+".svg"] = pulsed(t, name)
	}
	return charts
}

// parts are what stands between the marks of docsPage.
func (d documented) parts(t *testing.T) map[string]string {
	parts := map[string]string{"boundary": printed(t, "boundary", d.boundary), "burst": printed(t, "burst --strict", d.burst), "compare": printed(t, "compare", d.compare)}
	for _, name := range sim.Algorithms() {
		parts[name] = d.figures(name)
	}
	return parts
}

// printed is a command and what it prints.
func printed(t *testing.T, command string, r Result) string {
	t.Helper()
	var b bytes.Buffer
	r.Intro, r.Notes = nil, nil // the page says it in its own words
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("```text\n$ sluice lab %s\n%s```\n", command, &b)
}

// figures is a table of what the experiments found of one algorithm.
func (d documented) figures(name string) string {
	boundary, burst, compare := d.boundary.Row(name), d.burst.Row(name), d.compare.Row(name)
	n := func(r Row, figure string) string { return shown(r.Figures.Get(figure)) }
	lines := [][2]string{
		{"`boundary`: of 600 a minute, in the 20 s around a minute's end", n(boundary, "largest_in_20s") + " admitted"},
		{"`burst`: of 10/s, in the first second, both ends included; in any half-open second", n(burst, "first_second") + "; " + n(burst, "largest_in_1s_half_open")},
		{"`compare`: of 10/s, a minute of 15 a second at random", n(compare, "admitted") + " admitted, " + n(compare, "denied") + " denied"},
		{"its largest half-open second; what is promised for any", n(compare, "largest_in_1s") + "; " + n(compare, "bound_in_1s")},
		{"its slowest 1 % wait", n(compare, "wait_p99_ms") + " ms"},
		{"a key's state", n(compare, "state_bytes") + " bytes"},
	}
	if name == "leaky_bucket" {
		lines[0][1] += ", " + n(boundary, "acting_in_20s") + " acting"
		lines[1][0] += "; acting in the first"
		lines[1][1] += "; " + n(burst, "acting_first_second")
		lines[3][0] = "its largest half-open second; what acts in any"
		lines[3][1] = n(compare, "largest_in_1s") + "; " + n(compare, "acting_in_1s")
	}
	var b strings.Builder
	b.WriteString("| in the lab | |\n|---|---|\n")
	for _, line := range lines {
		fmt.Fprintf(&b, "| %s | %s |\n", line[0], line[1])
	}
	return b.String()
}

// docs/algorithms.md and its drawings show what the lab finds. -update (make docs) writes them.
func TestDocs(t *testing.T) {
	d := runDocumented(t)
	page, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, want := range d.parts(t) {
		begin, end := "<!-- lab: "+name+" -->\n", "<!-- lab: end -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Errorf("%s: no %q, or no end of it", docsPage, strings.TrimSpace(begin))
			continue
		}
		text = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(docsPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(docsDir, 0o755); err != nil {
			t.Fatal(err)
		}
	} else if text != string(page) {
		t.Errorf("%s does not show what the lab finds: make docs", docsPage)
	}
	for name, chart := range d.drawings(t) {
		var b bytes.Buffer
		if err := chart.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(docsDir, name)
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not what the lab draws (%v): make docs", file, err)
		}
		if !strings.Contains(text, "](lab/"+name+")") {
			t.Errorf("%s does not show lab/%s", docsPage, name)
		}
	}
}
