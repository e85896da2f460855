package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLabVirtualExitCodes(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte("1,a\nsoon,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args     string
		exit     int
		out, err string // parts of what is printed
	}{
		{"lab --help", 0, "compare", ""},
		{"lab compare --help", 0, "sluice lab compare --report out.html", ""},
		{"lab boundary --help", 0, "sluice lab boundary --limit 100/10s", ""},
		{"lab burst --help", 0, "sluice lab burst --limit 100/10s", ""},

		{"lab boundary", 0, "largest in 20s                     800          1200             700           800        600\n", ""},
		{"lab boundary --csv --algorithms fixed_window", 0, "name,largest_in_20s,", ""},
		{"lab burst", 0, "first second half open             19", ""},
		{"lab burst --strict --algorithms token_bucket", 0, "strict burst 5", ""},
		{"lab compare --limit 5/s --burst 2 --algorithms token_bucket,leaky_bucket", 0, "wait p99 ms", ""},
		{"lab compare --arrivals bursts --size 4 --every 250ms", 0, "4 requests at once, each 250ms", ""},

		{"lab boundary --limit fast", 2, "", "--limit"},
		{"lab boundary --burst 0", 2, "", "--burst 0"},
		{"lab boundary --rate 0", 2, "", "--rate 0"},
		{"lab boundary --around 31s", 2, "", "Around 31s"},
		{"lab boundary --csv --json", 2, "", "--json"},
		{"lab boundary --report " + dir + "/no/such/folder.html", 2, "", "--report"},
		{"lab boundary --report " + dir, 2, "", "is a folder"},
		{"lab burst --limit 1/s --strict", 2, "", "Count of at least 2"},
		{"lab burst --window 0s", 2, "", "--window 0s"},
		{"lab burst --window=-1s", 2, "", "Window -1s"},
		{"lab boundary --around 0s", 2, "", "--around 0s"},
		{"lab compare --duration 0s", 2, "", "--duration 0s"},
		{"lab compare --arrivals on-off --off 0s", 2, "", "--off 0s"},
		{"lab burst --algorithms magic", 2, "", `"magic": want one of token_bucket`},
		{"lab burst more", 2, "", "more"},
		{"lab compare --arrivals square", 2, "", "--arrivals"},
		{"lab compare --rate 0", 2, "", "--rate 0"},
		{"lab compare --rate NaN", 2, "", "NaN"},
		{"lab compare --size 0", 2, "", "--size 0"},
		{"lab compare --subjects 0", 2, "", "--subjects 0"},
		{"lab compare --cost 0", 2, "", "--cost 0"},
		{"lab compare --tries 0", 2, "", "--tries 0"},
		{"lab compare --peak 0", 2, "", "--peak 0"},
		{"lab compare --retry never", 2, "", "--retry"},
		{"lab compare --limit 100/s --rate 1000000 --duration 24h", 2, "", "want at most"},
		{"lab compare --trace " + bad, 2, "", `--trace: sim: trace: line 2: time "soon"`},
		{"lab compare --trace " + dir + "/none", 2, "", "none"},
		{"lab compare --format xml", 2, "", "--format"},
	} {
		t.Run(strings.ReplaceAll(c.args, dir, ""), func(t *testing.T) {
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

// Every virtual experiment prints the shared JSON, and a report that has the command to run it again.
func TestLabVirtualJSONAndReport(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(log, []byte(strings.Repeat(`192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`+"\n", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"boundary", "burst --strict", "compare --seed 3", "compare --trace " + log + " --format nginx"} {
		t.Run(args, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "it's out.html")
			var out, err bytes.Buffer
			line := append(strings.Fields("lab "+args), "--json", "--report", report)
			if exit := run(t.Context(), line, &out, &err); exit != 0 {
				t.Fatalf("exit %d: %s", exit, &err)
			}
			var got struct {
				Experiment string
				Params     map[string]any
				Results    []map[string]any
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if want, _, _ := strings.Cut(args, " "); got.Experiment != want || len(got.Results) < 5 || got.Results[0]["name"] != "token_bucket" || got.Params["limit_count"] == nil {
				t.Errorf("%+v", got)
			}
			page, e := os.ReadFile(report)
			if e != nil || !bytes.HasPrefix(page, []byte("<!DOCTYPE html>")) || !bytes.Contains(page, []byte("sluice lab "+args+" --json --report &#39;")) {
				t.Errorf("%v: %.300s", e, page)
			}
			if !strings.Contains(err.String(), "written to "+report) {
				t.Errorf("stderr %q", &err)
			}
		})
	}
}

func TestAgain(t *testing.T) {
	if got, want := again([]string{"lab", "burst", "--limit=10/s", "", "a b", "it's"}), `sluice lab burst --limit=10/s '' 'a b' 'it'\''s'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
