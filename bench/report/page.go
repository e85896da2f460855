package report

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"text/template"
	"time"

	"github.com/sluice-go/sluice/bench/contender"
)

// LongForm is about how long the long form takes, in words.
const LongForm = "15 minutes"

//go:embed page.md.tmpl
var pageTemplate string

//go:embed not-won.md
var notWon string

//go:embed traffic.md
var trafficNotes string

// Page writes performance.md and its charts into a folder. Charts that an earlier run left there and this one has not
// are removed.
func (r *Report) Page(folder string) error {
	old, err := filepath.Glob(filepath.Join(folder, "performance*.svg"))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	for _, c := range r.charts() {
		if err := writeFile(filepath.Join(folder, c.file), c.draw); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, "performance.md"), r.page)
}

func writeFile(path string, write func(io.Writer) error) error {
	var b strings.Builder
	if err := write(&b); err != nil {
		return fmt.Errorf("report: %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// page writes the text.
func (r *Report) page(w io.Writer) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	type part struct {
		Title, Speed, Costs string
		Faults              []string
	}
	view := struct {
		*Report
		LongForm, Modules, Bars, Notes, Round, Took              string
		Contenders                                               []contender.Contender
		Works                                                    []part
		HasRates, HasGrowth                                      bool
		OthersTable, FormsSpeed, FormsCosts, MemoryTable         string
		SizesTable, ClusterSpeed, ClusterCosts, AlgorithmsTable  string
		TrafficTable, TrafficNotes, LocalTable, LocalMemoryTable string
	}{
		Report: r, LongForm: LongForm, Modules: modules(), Bars: r.bars().page(), Notes: notWon,
		Round: r.Round.String(), Took: r.Took.Round(time.Second).String(),
		Contenders: append(contender.All(), contender.Switched()...),
		HasRates:   len(r.Works) > 0, HasGrowth: len(r.Sizes) > 0 && r.Cluster != nil && len(r.Traffic) > 0,
		OthersTable: r.others().page(), MemoryTable: r.memory().page(), SizesTable: r.sizes().page(), AlgorithmsTable: r.algorithms().page(),
		TrafficTable: r.traffic().page(), TrafficNotes: trafficNotes,
		LocalTable: r.local().page(), LocalMemoryTable: r.localMemory().page(),
	}
	for _, k := range r.Works {
		view.Works = append(view.Works, part{k.Text, k.speed().page(), k.costs().page(), k.faults()})
	}
	if r.Forms != nil {
		view.FormsSpeed, view.FormsCosts = r.Forms.speed().page(), r.Forms.costs().page()
	}
	if r.Cluster != nil {
		view.ClusterSpeed, view.ClusterCosts = r.Cluster.speed().page(), r.Cluster.costs().page()
	}
	return t.Execute(w, view)
}

// page is a table in Markdown; "" if it has no rows.
func (t *table) page() string {
	if len(t.rows) == 0 {
		return ""
	}
	var b strings.Builder
	t.markdown(&b)
	return b.String()
}

// modules names the peers' versions, as this program was built with them.
func modules() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "peers of unknown versions"
	}
	var list []string
	for _, m := range info.Deps {
		for _, peer := range peers {
			if m.Path == peer {
				list = append(list, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
			}
		}
	}
	return strings.Join(list, ", ")
}

var peers = []string{
	"github.com/redis/go-redis/v9", "github.com/go-redis/redis_rate/v10", "github.com/ulule/limiter/v3",
	"github.com/throttled/throttled/v2", "github.com/redis/rueidis", "github.com/sethvargo/go-limiter",
	"github.com/go-chi/httprate", "golang.org/x/time", "go.uber.org/ratelimit",
}
