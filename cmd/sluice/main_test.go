package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/policy"
)

const example = "../../examples/rules.yaml"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodes(t *testing.T) {
	faulty := write(t, "headers: loud\nrules:\n  - {name: a, match: /, limits: [{algorithm: magic, limit: 1/s, subject: ip}]}\n")
	loose := write(t, "trusted_proxies: [0.0.0.0/0]\nrules:\n  - {name: a, match: /, limits: [{algorithm: fixed_window, limit: 1/s, subject: ip}]}\n")
	none := filepath.Join(t.TempDir(), "none.yaml")
	for _, c := range []struct {
		args     string
		exit     int
		out, err string // parts of what is printed
	}{
		{"--help", 0, "Usage: sluice <command>", ""},
		{"--version", 0, "sluice ", ""},
		{"serve --help", 0, "sluice serve examples/rules.yaml", ""},
		{"check --help", 0, "sluice check examples/rules.yaml", ""},
		{"script --help", 0, "sluice script token_bucket", ""},

		{"", 2, "", `expected one of "serve", "check", "explain"`},
		{"guess", 2, "", "guess"},
		{"check", 2, "", "rules"},
		{"check --loud x", 2, "", "--loud"},

		{"check " + example, 0, example + ": valid, 4 rules\n", ""},
		{"check " + loose, 0, "valid, 1 rules", "warning: trusted_proxies"},
		{"check " + faulty, 1, "", faulty + ":1:10: headers: "},
		{"check " + faulty, 1, "", "rules[0].limits[0].algorithm: "},
		{"check " + none, 2, "", none},
		{"check --json " + faulty, 1, `"valid": false`, ""},

		{"script magic", 2, "", `"magic": want one of token_bucket, fixed_window, sliding_window, leaky_bucket`},
		{"script", 2, "", "algorithm"},

		{"serve " + faulty, 1, "", faulty + ":1:10: headers: "},
		{"serve " + none, 2, "", none},
		{"serve --listen nowhere:1:2 " + example, 2, "", "--listen"},
		{"serve --listen 192.0.2.1:1 " + example, 1, "", "--listen"}, // nobody's address here
		{"serve --upstream localhost:9000 " + example, 2, "", "--upstream"},
		{"serve --upstream http://user:hunter2@ " + example, 2, "", "--upstream"},
		{"serve --upstream http:/// " + example, 2, "", "--upstream"},
		{"serve --upstream http://host:port " + example, 2, "", "--upstream"},
		{"serve --upstream http://host/?q " + example, 2, "", "no query"},
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
			if strings.Contains(err.String(), "hunter2") {
				t.Errorf("stderr holds the password: %q", &err)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	path := write(t, "rules:\n  - {name: a, match: /, limits: [{algorithm: magic, limit: 1/s, subject: ip}]}\n")
	var out, err bytes.Buffer
	run(t.Context(), []string{"check", "--json", path}, &out, &err)
	var got checked
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v", &out, err)
	}
	if got.File != path || got.Valid || len(got.Faults) != 1 || got.Warnings == nil {
		t.Fatalf("%+v, want one fault of %s", got, path)
	}
	if f := got.Faults[0]; f.Line != 2 || f.Column != 46 || f.Field != "rules[0].limits[0].algorithm" || f.Message == "" {
		t.Errorf("fault %+v, want one at 2:46", f)
	}
}

// Each algorithm of a rule file has its script, which holds the strategy's own text, and nothing else is printed.
func TestScript(t *testing.T) {
	seen := map[string]string{}
	for _, name := range policy.Algorithms() {
		var out, err bytes.Buffer
		if exit := run(t.Context(), []string{"script", name}, &out, &err); exit != 0 || err.Len() > 0 {
			t.Errorf("%s: exit %d, stderr %q", name, exit, &err)
		}
		for _, part := range []string{"redis.call", "KEYS[1]", "function take("} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: no %s in the script", name, part)
			}
		}
		if other, ok := seen[out.String()]; ok {
			t.Errorf("%s and %s have one script", name, other)
		}
		seen[out.String()] = name
	}
}
