package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/redistest"
)

// overrideRules is a rule file of a rule with one limit and of a rule with two.
func overrideRules(redis string) string {
	return fmt.Sprintf(`store: {redis: "redis://%s"}
rules:
  - name: api
    match: /
    limits: [{algorithm: token_bucket, limit: 100/10s, subject: "header:X-API-Key"}]
  - name: login
    match: /login
    limits:
      - {name: each, algorithm: fixed_window, limit: 5/min, subject: ip}
      - {name: all, algorithm: sliding_window, limit: 1000/h, subject: global}
`, redis)
}

// command runs the command with arguments of one word each.
func command(t *testing.T, args string) (exit int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	exit = run(t.Context(), strings.Fields(args), &o, &e)
	return exit, o.String(), e.String()
}

// An override is set, listed and cleared; a secret is hashed and never printed.
func TestOverrideCommand(t *testing.T) {
	server := redistest.Start(t)
	rules := write(t, overrideRules(server.Addr))
	for _, c := range []struct {
		args string
		exit int
		out  string // a part of it
	}{
		{"--list", 0, "no overrides\n"},
		{"login/each 192.0.2.1 --clear", 1, "login/each 192.0.2.1: there is no override\n"},
		{"api s3cret 5000/10s --for 2h", 0, "api header:"},
		{"login/each 192.0.2.1 50/min", 0, "login/each 192.0.2.1: 50/min until it is cleared, in all processes within 5 s\n"},
		{"login/all global 2000/h", 0, "login/all global: 2000/h until it is cleared"},
		{"login/each 2001:db8::1 7/min", 0, "login/each 2001:db8::/64: 7/min"},
		{"login/each 192.0.2.9 --key 1/min", 0, "login/each 192.0.2.9: 1/min"},
		{"api s3cret 6000/10s --burst 9 --for 2h", 0, "6000/10s burst 9 until 20"},
		{"--list", 0, "login/each  2001:db8::/64"},
		{"login/each 192.0.2.1 --clear", 0, "login/each 192.0.2.1: cleared, in all processes within 5 s\n"},
		{"login/each 192.0.2.1 --clear --json", 1, `"cleared": false`},
	} {
		exit, out, stderr := command(t, "override "+rules+" "+c.args)
		if exit != c.exit || !strings.Contains(out, c.out) || stderr != "" {
			t.Errorf("%s: exit %d, %q, stderr %q: want %d and %q", c.args, exit, out, stderr, c.exit, c.out)
		}
		if strings.Contains(out+stderr, "s3cret") {
			t.Errorf("%s: the secret is printed: %q", c.args, out+stderr)
		}
	}

	_, out, _ := command(t, "override "+rules+" --list --json")
	var got overrides
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if len(got.Overrides) != 4 || got.Warnings == nil || len(got.Warnings) != 0 {
		t.Fatalf("%+v: want four overrides and no warning", got)
	}
	api := got.Overrides[0]
	until, err := time.Parse(time.RFC3339, api.Until)
	if api.Limit != "api" || !strings.HasPrefix(api.Subject, "header:") || api.Rate != "6000/10s burst 9" || api.Ended ||
		err != nil || time.Until(until) < 119*time.Minute || time.Until(until) > 2*time.Hour {
		t.Errorf("%+v: want 6000/10s burst 9 for two hours", api)
	}

	server.Client().HSet(t.Context(), "sluice:{overrides}", "gone 1", `{"limit":"1/s"}`, "api 2", "3")
	exit, out, _ := command(t, "override "+rules+" --list")
	for _, want := range []string{"gone", "no such limit", `field "api 2"`} {
		if exit != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q: want %q in it", exit, out, want)
		}
	}
}

// What is asked wrongly is misuse, and says what is wanted; a Redis that is away is not.
func TestOverrideMisuse(t *testing.T) {
	rules := write(t, overrideRules("127.0.0.1:1"))
	for _, c := range []struct {
		args string
		exit int
		err  string
	}{
		{"override", 2, "rules"},
		{"override none.yaml --list", 2, "none.yaml"},
		{"override " + rules, 2, "want RULES RULE SUBJECT LIMIT"},
		{"override " + rules + " api", 2, "want RULES RULE SUBJECT LIMIT"},
		{"override " + rules + " api s3cret", 2, "want a LIMIT"},
		{"override " + rules + " api s3cret 5/s --clear", 2, "no LIMIT beside it"},
		{"override " + rules + " --list --clear", 2, "want one of them"},
		{"override " + rules + " api --list", 2, "no RULE beside it"},
		{"override " + rules + " api s3cret --clear --for 2h", 2, "go with a LIMIT"},
		{"override " + rules + " api s3cret 5/s --for=-2h", 2, "--for -2h0m0s"},
		{"override " + rules + " api s3cret 5/s --for=4999ms", 2, "--for 4.999s: want at least 5s"},
		{"override " + rules + " api s3cret 5/s --for=0s", 2, "--for 0s: want at least 5s"},
		{"override " + rules + " api s3cret 5/s --burst -2", 2, "--burst"},
		{"override " + rules + " api s3cret 5", 2, "want count/period"},
		{"override " + rules + " api s3cret 0/s", 2, "Count 0"},
		{"override " + rules + " apis s3cret 5/s", 2, "no such rule: want one of api, login"},
		{"override " + rules + " login 192.0.2.1 5/s", 2, "want one of login/each, login/all"},
		{"override " + rules + " login/each s3cret 5/s", 2, "SUBJECT"},
		{"override " + rules + " login/each 192.0.2.1 5/s --burst 2", 2, "a window has no burst of its own"},
		{"override " + example + " token 192.0.2.1 5/s", 2, "has no store.redis"},
		{"override " + example + " --list", 2, "has no store.redis"},
		{"override " + rules + " --list", 1, "override"},
		{"override " + rules + " api s3cret 5/s", 1, "override"},
		{"override " + rules + " api s3cret --clear", 1, "override"},
	} {
		exit, out, stderr := command(t, c.args)
		if exit != c.exit || out != "" || !strings.Contains(stderr, c.err) {
			t.Errorf("%s: exit %d, %q, stderr %q: want %d and %q", c.args, exit, out, stderr, c.exit, c.err)
		}
		if strings.Contains(stderr, "s3cret") {
			t.Errorf("%s: the secret is printed: %q", c.args, stderr)
		}
	}
}
