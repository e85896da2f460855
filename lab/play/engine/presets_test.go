package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The figures that the page's answers and docs/lesson.md name.
func TestPresets(t *testing.T) {
	allowed := func(f Figures) int64 { return f.Allowed }
	largest := func(f Figures) int64 { return f.Largest }
	acting := func(f Figures) int64 { return f.LargestActing }
	away := func(f Figures) int64 { return f.AwayAllowed }
	keys := func(f Figures) int64 { return f.Keys }
	wait := func(f Figures) int64 { return f.WorstDelay }
	for _, c := range []struct {
		preset, lane, what string
		of                 func(Figures) int64
		want               int64
	}{
		{"boundary", "fixed_window", "admitted", allowed, 1200},
		{"boundary", "fixed_window", "largest in 20 s", largest, 1200},
		{"boundary", "sliding_window", "largest in 20 s", largest, 700},
		{"boundary", "token_bucket", "largest in 20 s", largest, 800},
		{"boundary", "leaky_bucket", "largest in 20 s", largest, 800},
		{"boundary", "leaky_bucket", "acting in 20 s", acting, 201},
		{"burst", "token_bucket", "largest in 1 s", largest, 20},
		{"burst", "fixed_window", "largest in 1 s", largest, 11},
		{"burst", "sliding_window", "largest in 1 s", largest, 10},
		{"burst", "leaky_bucket", "acting in 1 s", acting, 11},
		{"strict", "token_bucket", "largest in 1 s", largest, 10},
		{"wait", "token_bucket", "acting in 1 s", acting, 20},
		{"wait", "leaky_bucket", "admitted", allowed, 20},
		{"wait", "leaky_bucket", "acting in 1 s", acting, 11},
		{"wait", "leaky_bucket", "longest wait, µs", wait, 1_900_000},
		{"ttl", "time_to_full", "largest in 10 min", largest, 9},
		{"ttl", "time_to_full", "keys left", keys, 0},
		{"ttl", "fixed_60s", "largest in 10 min", largest, 35},
		{"ttl", "fixed_24h", "largest in 10 min", largest, 9},
		{"ttl", "fixed_24h", "keys left", keys, 10},
		{"outage", "share", "admitted while away", away, 496},
		{"outage", "whole", "admitted while away", away, 2000},
		{"outage", "allow", "admitted while away", away, 3000},
		{"outage", "deny", "admitted while away", away, 0},
	} {
		sim := runPreset(t, c.preset)
		if got := c.of(laneOf(t, sim, c.lane).Figures); got != c.want {
			t.Errorf("%s, %s: %s %d, want %d", c.preset, c.lane, c.what, got, c.want)
		}
	}
}

// 20 pass in the first second with both its ends, 19 without the last instant.
func TestBurstHalfOpen(t *testing.T) {
	sim := openPreset(t, "burst")
	sim.Advance(second - 1)
	if got := laneOf(t, sim, "token_bucket").Figures.Allowed; got != 19 {
		t.Errorf("%d admitted before the second has ended, want 19", got)
	}
	sim.Advance(second)
	if got := laneOf(t, sim, "token_bucket").Figures.Allowed; got != 20 {
		t.Errorf("%d admitted in the closed second, want 20", got)
	}
}

func TestTracePresets(t *testing.T) {
	race, block := openTrace(t, "race"), openTrace(t, "block")
	naive, watch, lua := race.Lanes[0].Figures(race.End), race.Lanes[1].Figures(race.End), race.Lanes[2].Figures(race.End)
	if naive.Allowed != 40 || naive.Commands != 80 {
		t.Errorf("naive: %+v, want all 40 of 40 to pass", naive)
	}
	if watch.Allowed != 1 || watch.Denied != 39 || watch.Conflicts != 39 || watch.Commands != 278 {
		t.Errorf("WATCH: %+v, want one of 40, and 39 refused writes", watch)
	}
	if lua.Allowed != 1 || lua.Denied != 39 || lua.Conflicts != 0 || lua.Commands != 40 {
		t.Errorf("Lua: %+v, want one of 40, by one command each", lua)
	}
	fast, slow := block.Lanes[0].Figures(block.End), block.Lanes[1].Figures(block.End)
	if slow.Worst < 20*millisecond || fast.Worst > millisecond {
		t.Errorf("the slowest call takes %d µs beside a script of 20 ms, and %d µs beside a fast one", slow.Worst, fast.Worst)
	}
	if slow.Median > 2*fast.Median {
		t.Errorf("median %d µs, beside a fast script %d: most calls do not meet the slow script", slow.Median, fast.Median)
	}
}

// The lesson names the figures that the class will see.
func TestLesson(t *testing.T) {
	page, err := os.ReadFile("../../../docs/lesson.md")
	if err != nil {
		t.Fatal(err)
	}
	figures := func(preset, name string) Figures { return laneOf(t, runPreset(t, preset), name).Figures }
	race := openTrace(t, "race")
	watch, block := race.Lanes[1].Figures(race.End), openTrace(t, "block")
	for what, want := range map[string]string{
		"fixed window at the boundary":   thousands(figures("boundary", "fixed_window").Largest),
		"sliding window at the boundary": thousands(figures("boundary", "sliding_window").Largest),
		"buckets at the boundary":        thousands(figures("boundary", "token_bucket").Largest),
		"burst":                          thousands(figures("burst", "token_bucket").Largest),
		"leaky's wait":                   fmt.Sprintf("%.1f s", float64(figures("wait", "leaky_bucket").WorstDelay)/1e6),
		"leaky's second":                 thousands(figures("wait", "leaky_bucket").LargestActing),
		"naive clients":                  thousands(race.Lanes[0].Figures(race.End).Allowed),
		"WATCH":                          thousands(watch.Commands),
		"a fixed TTL":                    thousands(figures("ttl", "fixed_60s").Largest),
		"keys kept":                      thousands(figures("ttl", "fixed_24h").Keys),
		"a slow script":                  fmt.Sprintf("%.1f ms", float64(block.Lanes[1].Figures(block.End).Worst)/1e3),
		"shares":                         thousands(figures("outage", "share").AwayAllowed),
		"no shares":                      thousands(figures("outage", "whole").AwayAllowed),
		"allow all":                      thousands(figures("outage", "allow").AwayAllowed),
	} {
		if !strings.Contains(string(page), "**"+want+"**") {
			t.Errorf("docs/lesson.md does not name **%s**, the figure of %s", want, what)
		}
	}
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func TestPresetsAreDue(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Presets() {
		s, err := Parse(p.Setup)
		switch {
		case err != nil:
			t.Errorf("%s: %v", p.Name, err)
		case names[p.Name]:
			t.Errorf("%s: a name twice", p.Name)
		case s.String() != p.Setup && len(s.String()) >= len(p.Setup):
			t.Errorf("%s: setup %q is written %q", p.Name, p.Setup, s)
		}
		names[p.Name] = true
	}
	if len(names) != 8 {
		t.Errorf("%d presets, want 8", len(names))
	}
}

func openPreset(t *testing.T, name string) *Sim {
	t.Helper()
	for _, p := range Presets() {
		if p.Name == name {
			return openSim(t, p.Setup)
		}
	}
	t.Fatalf("no preset %q", name)
	return nil
}

func runPreset(t *testing.T, name string) *Sim {
	t.Helper()
	sim := openPreset(t, name)
	for _, p := range Presets() {
		if p.Name == name {
			sim.Advance(p.End * millisecond)
		}
	}
	return sim
}

func openTrace(t *testing.T, name string) *Trace {
	t.Helper()
	for _, p := range Presets() {
		if p.Name != name {
			continue
		}
		s, err := Parse(p.Setup)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := NewTrace(s)
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	t.Fatalf("no preset %q", name)
	return nil
}

func openSim(t interface {
	Helper()
	Fatal(...any)
}, text string) *Sim {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

func laneOf(t *testing.T, sim *Sim, name string) Lane {
	t.Helper()
	for _, l := range sim.Lanes() {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no lane %q", name)
	return Lane{}
}
