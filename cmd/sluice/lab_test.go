package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLabExitCodes(t *testing.T) {
	for _, c := range []struct {
		args     string
		exit     int
		out, err string // parts of what is printed
	}{
		{"lab --help", 0, "outage", ""},
		{"lab outage --help", 0, "sluice lab outage --skew 70,10,10,10 --how hang --json", ""},
		{"lab", 2, "", "compare"},
		{"lab outage --limit fast", 2, "", "--limit"},
		{"lab outage --limit 100000/s", 2, "", "want at most 5000"},
		{"lab outage --burst=-1", 2, "", "Burst -1"},
		{"lab outage --instances 0", 2, "", "--instances 0"},
		{"lab outage --demand 0", 2, "", "--demand 0"},
		{"lab outage --demand NaN", 2, "", "NaN"},
		{"lab outage --bunch 0", 2, "", "--bunch 0"},
		{"lab outage --skew 1,2", 2, "", "2 weights for 4 instances"},
		{"lab outage --skew 1,x", 2, "", "--skew"},
		{"lab outage --away 5", 2, "", "--away \"5\": want FROM-TO"},
		{"lab outage --away 5-x", 2, "", "--away \"5-x\""},
		{"lab outage --away 5-35", 2, "", "14s"},
		{"lab outage --away 8-2", 2, "", "away 8s to 2s"},
		{"lab outage --flap 0s", 2, "", "Flap 0s"},
		{"lab outage --timeout 0s", 2, "", "--timeout 0s"},
		{"lab outage --duration 0s", 2, "", "--duration 0s"},
		{"lab outage --how kill", 2, "", "--how"},
		{"lab outage --csv --json", 2, "", "--json"},
		{"lab outage --svg no/such/folder/x.svg", 2, "", "--svg"},
		{"lab outage more", 2, "", "more"},
		{"lab outage --server false", 1, "", "ended at once"},
		{"lab outage --server no-such-server", 1, "", "no-such-server"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, err bytes.Buffer
			if exit := run(t.Context(), strings.Fields(c.args), &out, &err); exit != c.exit {
				t.Errorf("exit %d, want %d", exit, c.exit)
			}
			if !strings.Contains(out.String(), c.out) || c.out == "" && out.Len() > 0 {
				t.Errorf("stdout %q, want %q in it", &out, c.out)
			}
			if !strings.Contains(err.String(), c.err) || c.err == "" && err.Len() > 0 {
				t.Errorf("stderr %q, want %q in it", &err, c.err)
			}
		})
	}
}

func TestLabOutage(t *testing.T) {
	drawing := filepath.Join(t.TempDir(), "outage.svg")
	args := strings.Fields("lab outage --away 500ms-1s --flap-for 0s --duration 1500ms --demand 2 --json --svg " + drawing + " --report " + drawing + ".html")
	var out, err bytes.Buffer
	if exit := run(t.Context(), args, &out, &err); exit != 0 {
		t.Fatalf("exit %d: %s", exit, &err)
	}
	var got struct {
		Experiment string
		Results    []struct {
			Mode         string
			Share, Carry bool
			Admitted     int
			Bound, Ratio float64
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if got.Experiment != "outage" || len(got.Results) != 5 || got.Results[0].Admitted == 0 || got.Results[0].Bound != 250 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(err.String(), "outage: 5 fleets of 4 instances") || !strings.Contains(err.String(), drawing) {
		t.Errorf("progress %q", &err)
	}
	if svg, err := os.ReadFile(drawing); err != nil || !bytes.HasPrefix(svg, []byte("<svg ")) {
		t.Errorf("%v, %.40s", err, svg)
	}
	if page, err := os.ReadFile(drawing + ".html"); err != nil || !bytes.Contains(page, []byte("sluice lab outage --away 500ms-1s")) || !bytes.Contains(page, []byte("<svg ")) {
		t.Errorf("%v, %.200s", err, page)
	}
}

// A run that is interrupted ends at once, with 1, and prints no result.
func TestLabOutageInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	start := time.Now()
	var out, err bytes.Buffer
	exit := run(ctx, []string{"lab", "outage"}, &out, &err)
	if exit != 1 || out.Len() > 0 || !strings.Contains(err.String(), "interrupted") || time.Since(start) > 5*time.Second {
		t.Errorf("exit %d after %v, stdout %q, stderr %q", exit, time.Since(start), &out, &err)
	}
}
