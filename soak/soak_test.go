//go:build linux

// Package soak keeps a fleet of two `sluice serve` under load for long, while its rule file is edited and its Redis breaks
// in many ways: no request may fail, and memory, goroutines and file descriptors must stay where they are. `make soak`
// runs an hour, `make soak FOR=5m` the short form; the suite runs some seconds of it, so that it stays able to run.
package soak

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// form is how much of a soak to run.
type form struct {
	length time.Duration
	rate   int           // requests a second, of all kinds
	every  time.Duration // from one event to the next
	fault  time.Duration // that a fault lasts
	sample time.Duration // from one look at the processes to the next
	report time.Duration // from one line to the next
	judged bool          // memory is held to be flat: takes minutes to say
}

func chosen(t *testing.T) form {
	text := os.Getenv("SOAK")
	if text == "" {
		return form{
			length: 12 * time.Second, rate: 300, every: 600 * time.Millisecond, fault: 200 * time.Millisecond,
			sample: 500 * time.Millisecond, report: 3 * time.Second,
		}
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < time.Minute {
		t.Fatalf("SOAK: %q: want a duration of at least 1m", text)
	}
	return form{
		length: length, rate: 2000, every: 5 * time.Second, fault: 2 * time.Second,
		sample: min(5*time.Second, length/60), report: max(10*time.Second, length/60), judged: true,
	}
}

func TestSoak(t *testing.T) {
	f := chosen(t)
	fleet := startFleet(t)
	before := fleet.rest(t, nil) // before there is any load
	load := startLoad(fleet, f.rate)
	events := startEvents(t, fleet, f)

	start := time.Now()
	taken := make([][]sample, len(fleet.processes))
	next := start.Add(f.report)
	for time.Since(start) < f.length {
		time.Sleep(f.sample)
		for i, p := range fleet.processes {
			s, err := p.look()
			if err != nil {
				load.failed("status", fmt.Sprint(err))
				continue
			}
			taken[i] = append(taken[i], s)
		}
		if now := time.Now(); now.After(next) {
			next = now.Add(f.report)
			t.Logf("%8v %s · %s · %s", now.Sub(start).Round(time.Second), load.line(), last(taken), events.last())
		}
	}
	events.stop()
	took := load.stop()
	r := result{
		Machine: fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
		Date:    start.UTC().Format(time.RFC3339), Seconds: took.Seconds(), Rate: load.rate(took),
		Requests: load.figures(), Errors: load.errors(), Events: events.counts(),
	}
	for i := range taken {
		r.Processes = append(r.Processes, quarters(taken[i]))
	}
	r.log(t)

	for what, n := range r.Errors {
		t.Errorf("%d times: %s", n, what)
	}
	least := 0.5 // the suite's other packages take what they can
	if f.judged {
		least = 0.9
	}
	if r.Rate < least*float64(f.rate) {
		t.Errorf("%.0f requests a second, want %d", r.Rate, f.rate)
	}
	for i, q := range r.Processes {
		for _, fault := range q.faults() {
			if f.judged {
				t.Errorf("process %d: %s", i, fault)
			}
		}
	}
	fleet.rest(t, before)
	fleet.checkRedis(t)
	fleet.end(t)
	if os.Getenv("SOAK") != "" {
		r.write(t)
	}
}

// result is what a soak comes to.
type result struct {
	Machine   string           `json:"machine"`
	Date      string           `json:"date"`
	Seconds   float64          `json:"seconds"`
	Rate      float64          `json:"requests_per_second"`
	Requests  []figures        `json:"requests"`
	Errors    map[string]int64 `json:"errors"`
	Events    map[string]int   `json:"events"`
	Processes []halves         `json:"processes"`
}

func (r result) log(t *testing.T) {
	t.Logf("%.0f s, %.0f requests a second", r.Seconds, r.Rate)
	t.Logf("%-8s %10s %9s %9s %9s %9s %10s", "kind", "requests", "p50", "p99", "p99.9", "most", "over 20ms")
	for _, q := range r.Requests {
		t.Logf("%-8s %10d %9v %9v %9v %9v %9.3f%%", q.Kind, q.Count, ms(q.P50), ms(q.P99), ms(q.P999), ms(q.Most), 100*q.Late)
	}
	t.Logf("%-10s %14s %14s", "process", "2nd quarter", "last quarter")
	for i, q := range r.Processes {
		t.Logf("%-10s %14d %14d", fmt.Sprintf("%d goroutines", i), q.Second.Goroutines, q.Last.Goroutines)
		t.Logf("%-10s %14d %14d", "  open files", q.Second.Files, q.Last.Files)
		t.Logf("%-10s %14.1f %14.1f", "  heap MB", mb(q.Second.Heap), mb(q.Last.Heap))
		t.Logf("%-10s %14.1f %14.1f", "  RSS MB", mb(q.Second.Resident), mb(q.Last.Resident))
	}
	t.Logf("events: %v", r.Events)
}

func ms(s float64) time.Duration { return time.Duration(s * 1e9).Round(10 * time.Microsecond) }

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

func (r result) write(t *testing.T) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll("out", 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join("out", "latest.json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// last is what each process took up when it was looked at last.
func last(taken [][]sample) string {
	text := ""
	for i, all := range taken {
		if len(all) > 0 {
			s := all[len(all)-1]
			text += fmt.Sprintf(" [%d: %d goroutines, %d files, heap %.0f MB, RSS %.0f MB]", i, s.Goroutines, s.Files, mb(s.Heap), mb(s.Resident))
		}
	}
	return text[min(1, len(text)):]
}
