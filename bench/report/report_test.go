package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/inprocess"
	"github.com/sluice-go/sluice/bench/load"
)

// whole is a report that has every part.
func whole() *Report {
	work := func(name, text string, callers, keys int) Work {
		k := Work{Name: name, Text: text, Callers: callers, Keys: keys}
		for i, c := range contender.All() {
			f := load.Figures{Rate: float64(1000 * (i + 1)), P50: 10, P99: 20, Allowed: 1}
			if c.Name == "throttled" {
				f.Errors, f.FirstErrorText = 0.5, "too <many> attempts"
			}
			k.Contenders = append(k.Contenders, Contender{Name: c.Name, Kind: c.Kind, Times: float64(i + 1), Figures: f})
		}
		return k
	}
	r := &Report{
		Machine: Machine{"A & B", 2, "Linux 6", "Go 1.26", "Redis 7.0.15"}, Date: "2026-11-30", Command: "go run . --full",
		Took: 90 * time.Second, Rounds: 5, Round: 300 * time.Millisecond, Pinned: "Not pinned: asked not to.",
		Rows: []Row{
			{Work: "128 callers, 10,000 keys: decisions/s", Ours: 400_000, Peer: 80_000, Ratio: 5, Bar: "at least 5", Holds: true},
			{Work: "128 callers, 10,000 keys: p99", Ours: 900, Peer: 1800, Ratio: 0.5, Bar: "at most 0.4", Unit: " µs"},
		},
		Others: []Row{{Work: "hot", Than: "rueidis", Ours: 2, Peer: 1, Ratio: 2}},
		Works: []Work{
			work("many-1", "1 caller, 10,000 keys", 1, 10_000), work("many-128", "128 callers, 10,000 keys", 128, 10_000),
			work("hot-128", "128 callers, one hot key, all allowed", 128, 1),
		},
		Sizes:    []Work{work("keys-1,000", "128 callers, 1,000 keys", 128, 1000), work("keys-10,000", "128 callers, 10,000 keys", 128, 10_000)},
		Traffic:  []load.Traffic{{Name: "no limiter", P50: 50, P99: 90, Reads: 7000}},
		Memory:   []Memory{{"sluice", 180}},
		LocalMem: []inprocess.Memory{{Name: "sluice", Keys: 1000, Bytes: 100}, {Name: "sluice", Keys: 10_000, Bytes: 90}},
		Local: []inprocess.Time{
			{Name: "sluice", Keyed: true, Goroutines: 1, Nanos: 100}, {Name: "x/time, one", Goroutines: 1, Nanos: 50},
			{Name: "ulule", Keyed: true, Goroutines: 1, Nanos: 300, Allocs: 2}, {Name: "go-limiter", Keyed: true, Goroutines: 1, Nanos: 120},
		},
	}
	forms, cluster := work("script-16", "EVAL", 16, 10_000), work("cluster-128", "cluster", 128, 10_000)
	r.Forms, r.Cluster = &forms, &cluster
	r.Algorithms = []Work{work("algorithms-hot-16", "16 callers, one hot key, all allowed, by algorithm", 16, 1)}
	return r
}

// The table of promises comes last, in columns, and a bar that fails shouts.
func TestText(t *testing.T) {
	var b strings.Builder
	whole().Text(&b)
	want := `
work                                      ours      peer  ratio          bar  holds
128 callers, 10,000 keys: decisions/s  400,000    80,000   5.00   at least 5    yes
128 callers, 10,000 keys: p99           900 µs  1,800 µs   0.50  at most 0.4     NO
`
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("the text ends otherwise:\n%s", b.String())
	}
	if !strings.Contains(b.String(), "throttled: 50.0% of the calls failed, such as: too <many> attempts") {
		t.Error("errors are not told of")
	}
}

// A text of a part of the works has no empty tables.
func TestTextOfPart(t *testing.T) {
	var b strings.Builder
	(&Report{Works: whole().Works[:1]}).Text(&b)
	if strings.Contains(b.String(), "bytes a key") || strings.Contains(b.String(), "holds") {
		t.Errorf("tables without rows:\n%s", b.String())
	}
}

// The page has every part, shows every chart that is written, and no other; charts are well-formed.
func TestPage(t *testing.T) {
	for name, r := range map[string]*Report{"long form": whole(), "short form": short()} {
		folder := t.TempDir()
		stale := filepath.Join(folder, "performance-old.svg")
		if err := os.WriteFile(stale, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.Page(folder); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "performance.md"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		for _, want := range []string{"| holds |", "| NO |", "What was not won", "A & B", "Not pinned", "## In process"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
		if strings.Contains(page, "\n\n\n") || strings.Contains(page, "<no value>") || strings.Contains(page, "|\n#") || strings.Contains(page, "|\n|---|\n|\n") {
			t.Errorf("%s: the page has gaps:\n%s", name, page)
		}
		shown := regexp.MustCompile(`\]\((performance-\w+\.svg)\)`).FindAllStringSubmatch(page, -1)
		files, _ := filepath.Glob(filepath.Join(folder, "*.svg"))
		if len(shown) != len(files) || len(files) < 2 {
			t.Errorf("%s: the page shows %d charts, and there are %d", name, len(shown), len(files))
		}
		for _, m := range shown {
			checkXML(t, filepath.Join(folder, m[1]))
		}
		if _, err := os.Stat(stale); err == nil {
			t.Errorf("%s: a chart of an earlier run was left", name)
		}
	}
}

// short is what the two-minute form has.
func short() *Report {
	r := whole()
	r.Algorithms, r.Sizes, r.Cluster, r.Traffic = nil, nil, nil, nil
	return r
}

func checkXML(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
			return
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00042: "0.0004", 0.0123: "0.01", 1.005: "1.00", 9.994: "9.99", 9.996: "10.0", 99.96: "100", 123.4: "123",
		999.9: "1,000", 1234.5: "1,235", 1_234_567: "1,234,567", -2.5: "-2.50",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
}

func TestFastest(t *testing.T) {
	peer, ok := Fastest(whole().Local, 1)
	if !ok || peer.Name != "go-limiter" {
		t.Errorf("the fastest keyed peer is %q, want go-limiter", peer.Name)
	}
	if _, ok := Fastest(whole().Local, 2); ok {
		t.Error("a peer where none was measured")
	}
}

func TestScales(t *testing.T) {
	for _, tt := range []struct {
		name   string
		s      scale
		ticks  int
		middle float64 // the value in the middle
	}{
		{"logarithmic", logScale([]float64{20, 5000}, 0, 100, false), 4, 316.2},
		{"linear", linearScale([]float64{20, 95}, 0, 100), 6, 50},
		{"no values", logScale(nil, 0, 100, false), 2, 3.16},
	} {
		if n := len(tt.s.ticks()); n != tt.ticks {
			t.Errorf("%s: %d ticks %v, want %d", tt.name, n, tt.s.ticks(), tt.ticks)
		}
		if at := tt.s.at(tt.middle); at < 49 || at > 51 {
			t.Errorf("%s: %v is at %.1f, want 50", tt.name, tt.middle, at)
		}
	}
}
