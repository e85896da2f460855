package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLabExperimentsExitCodes(t *testing.T) {
	for _, c := range []struct {
		args     string
		exit     int
		out, err string // parts of what is printed
	}{
		{"lab race --help", 0, "sluice lab race --callers 1000 --limit 100", ""},
		{"lab block --help", 0, "sluice lab block --entries 10000", ""},
		{"lab clock --help", 0, "sluice lab clock --skew 200ms", ""},
		{"lab ttl --help", 0, "sluice lab ttl --limit 5/min", ""},
		{"lab precision --help", 0, "sluice lab precision --limit 100/s", ""},
		{"lab race --callers 0", 2, "", "--callers 0"},
		{"lab race --callers 10001", 2, "", "want 1 to 10000"},
		{"lab race --limit 0", 2, "", "--limit 0"},
		{"lab race --rtt 0s", 2, "", "--rtt 0"},
		{"lab race --pool 0", 2, "", "--pool 0"},
		{"lab race --timeout 0s", 2, "", "--timeout 0"},
		{"lab race --csv --json", 2, "", "--json"},
		{"lab race --report no/such/folder/x.html", 2, "", "--report"},
		{"lab race --server no-such-server", 1, "", "no-such-server"},
		{"lab block --entries 0", 2, "", "--entries 0"},
		{"lab block --every 0s", 2, "", "--every 0"},
		{"lab block --others 0", 2, "", "--others 0"},
		{"lab block --duration 0s", 2, "", "--duration 0"},
		{"lab block --entries 2000000", 2, "", "want 1 to 1000000"},
		{"lab clock --limit fast", 2, "", "--limit"},
		{"lab clock --clients 0", 2, "", "--clients 0"},
		{"lab clock --clients 1", 2, "", "want 2 to 64"},
		{"lab clock --demand 0", 2, "", "--demand 0"},
		{"lab clock --demand NaN", 2, "", "NaN"},
		{"lab clock --skew 0s", 2, "", "--skew 0"},
		{"lab clock --step-for 0s", 2, "", "--step-for 0"},
		{"lab clock --duration 0s", 2, "", "--duration 0"},
		{"lab ttl --limit fast", 2, "", "--limit"},
		{"lab ttl --short 0s", 2, "", "--short 0"},
		{"lab ttl --long 0s", 2, "", "--long 0"},
		{"lab ttl --visitors 0", 2, "", "--visitors 0"},
		{"lab ttl --requests 0", 2, "", "--requests 0"},
		{"lab ttl --duration 0s", 2, "", "--duration 0"},
		{"lab precision --limit fast", 2, "", "--limit"},
		{"lab precision --limit 3/s", 2, "", "whole number of µs"},
		{"lab precision --burst 0", 2, "", "--burst 0"},
		{"lab precision --demand 0", 2, "", "--demand 0"},
		{"lab precision --requests 0", 2, "", "--requests 0"},
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

// Each command runs, prints JSON of the common form, tells of progress and writes a report.
func TestLabExperiments(t *testing.T) {
	for args, progress := range map[string]string{
		"lab race --callers 40 --limit 3":                              "race: naive: 40 callers",
		"lab block --entries 2000 --duration 50ms --every 20ms":        "block: log list walked",
		"lab clock --duration 10s":                                     "",
		"lab ttl --visitors 100":                                       "ttl: time to full",
		"lab precision --requests 200 --limit 100/s --burst 2":         "precision: integers",
		"lab race --callers 20 --server miniredis --rtt 2ms --pool 10": "miniredis",
	} {
		t.Run(args, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report.html")
			var out, errs bytes.Buffer
			if exit := run(t.Context(), append(strings.Fields(args), "--json", "--report", report), &out, &errs); exit != 0 {
				t.Fatalf("exit %d: %s", exit, &errs)
			}
			var got struct {
				Experiment string
				Params     map[string]any
				Results    []map[string]any
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if name := strings.Fields(args)[1]; got.Experiment != name || len(got.Params) == 0 || len(got.Results) < 3 || got.Results[0]["name"] == "" {
				t.Errorf("%+v", got)
			}
			if !strings.Contains(errs.String(), progress) || !strings.Contains(errs.String(), report) {
				t.Errorf("stderr %q, want %q and the report in it", &errs, progress)
			}
			if page, err := os.ReadFile(report); err != nil || !bytes.Contains(page, []byte("sluice "+args)) {
				t.Errorf("the report does not say how to run it again: %v", err)
			}
		})
	}
}
