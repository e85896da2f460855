package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

// operated is a rule file on a Redis, of which operators ask.
const operated = `
store: {redis: "redis://ADDR", timeout: 1s}
rules:
  - name: login
    match: "POST /login"
    limits:
      - {algorithm: token_bucket, limit: 2/h, burst: 4, subject: ip}
      - {algorithm: fixed_window, limit: 1000/h, subject: global}
  - name: api
    match: /api/
    limits:
      - {algorithm: token_bucket, limit: 2/h, burst: 4, subject: "header:X-API-Key"}
  - name: orders
    match: /api/orders
    on_outage: deny
    limits:
      - {algorithm: leaky_bucket, limit: 60/h, burst: 5, subject: ip}
`

// call runs a command line; words may hold spaces.
func call(t *testing.T, words ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	exit = run(t.Context(), words, &out, &err)
	return exit, out.String(), err.String()
}

// says fails the test unless a command ends like that and prints these parts.
func says(t *testing.T, exit int, parts []string, words ...string) string {
	t.Helper()
	got, out, err := call(t, words...)
	if got != exit {
		t.Errorf("%q: exit %d, want %d: %s%s", words, got, exit, out, err)
	}
	for _, part := range parts {
		if !strings.Contains(out+err, part) {
			t.Errorf("%q: %s%s: want %q in it", words, out, err, part)
		}
	}
	if strings.Contains(out+err, "s3cret") {
		t.Errorf("%q shows the secret: %s%s", words, out, err)
	}
	return out
}

func TestOperatorExitCodes(t *testing.T) {
	faulty := write(t, "headers: loud\nrules: []\n")
	two := write(t, strings.ReplaceAll(operated, "redis://ADDR", "redis://127.0.0.1:1"))
	for _, c := range []struct {
		args string
		exit int
		part string
	}{
		{"explain --help", 0, "sluice explain examples/rules.yaml --path /token"},
		{"inspect --help", 0, "sluice inspect rules.yaml api"},
		{"reset --help", 0, "sluice reset rules.yaml api"},
		{"diff --help", 0, "sluice diff rules.yaml rules.new.yaml"},
		{"doctor --help", 0, "sluice doctor rules.yaml"},

		{"explain " + example + " --path /token", 0, "would pass"},
		{"explain " + example + " --path http://shop.example/token?x=1", 0, "rule token: /token"},
		{"explain " + example + " --path /none", 0, "no rule matches"},
		{"explain " + example + " --path /token --cost 11", 1, "would be refused with 429, for ever at this cost"},
		{"explain " + example + " --path /token --cost=-1", 2, "--cost -1"},
		{"explain " + example + " --path token", 2, "--path"},
		{"explain " + example + " --ip nowhere", 2, "--ip \"nowhere\""},
		{"explain " + example + " -X G,T", 2, "--method"},
		{"explain " + example + " -H s3cret", 2, "--header: want NAME:VALUE"},
		{"explain " + faulty, 2, faulty + ":1:10: headers"},
		{"explain none.yaml", 2, "none.yaml"},
		{"explain " + two + " --path /api/orders", 1, "unknown, Redis can't tell; while it is away, on_outage is deny"},

		{"inspect " + example + " token 192.0.2.1", 2, "store.redis is missing"},
		{"inspect " + two + " token 192.0.2.1", 2, `"token": no such rule: want one of login, api, orders`},
		{"inspect " + two + " login 192.0.2.1", 2, "want one of login/token_bucket-ip, login/fixed_window-global"},
		{"inspect " + two + " login/none 192.0.2.1", 2, "no such limit: want one of login/token_bucket-ip"},
		{"inspect " + two + " orders s3cret", 2, "SUBJECT"},
		{"inspect " + two + " orders", 2, "SUBJECT"},
		{"inspect " + two + " orders 192.0.2.1", 1, "store unavailable"},
		{"inspect " + faulty + " a b", 2, "headers"},
		{"reset " + two + " orders 192.0.2.1", 1, "store unavailable"},
		{"reset " + example + " token 192.0.2.1", 2, "store.redis is missing"},

		{"diff " + example + " " + example, 0, "limits as they were, 0 changed"},
		{"diff " + example + " " + two, 1, "newly enforced"},
		{"diff " + example + " " + faulty, 2, faulty + ":1:10"},
		{"diff " + example, 2, "new"},

		{"doctor " + example, 0, "in process"},
		{"doctor " + two, 1, "fail  reach"},
		{"doctor none.yaml", 2, "none.yaml"},
	} {
		says(t, c.exit, []string{c.part}, strings.Fields(c.args)...)
	}
}

// An operator finds out why a client is refused, and lets it in again, without ever seeing its key.
func TestOperator(t *testing.T) {
	server := redistest.Start(t)
	rules := write(t, strings.ReplaceAll(operated, "ADDR", server.Addr))
	const hash = "header:0d23e0b7f5de2a5dac42e899fffb0dad"
	request := []string{"explain", rules, "--path", "/api/x", "-H", "X-API-Key: s3cret", "--ip", "192.0.2.1"}

	says(t, 0, []string{"would pass", hash, "4 of 4 remaining"}, request...)
	says(t, 1, []string{"nothing is kept"}, "inspect", rules, "api", "s3cret")

	store := redis.New(server.Client(), redis.Options{Timeout: 5 * time.Second})
	defer store.Close()
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 2, Period: time.Hour, Burst: 4}))
	if d, err := sluice.New(store, st, "api").AllowN(t.Context(), hash, 4); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	says(t, 1, []string{"would be refused with 429, for 30m0s", "refused for 30m0s; cost 1, 0 of 4 remaining", "sluice:{" + hash + "}:api:token_bucket"}, request...)
	says(t, 0, []string{"remaining  0 of 4", "next       in 30m0s", "full       in 2h0m0s", "words      spent=", "ttl        "}, "inspect", rules, "api", "s3cret")
	says(t, 0, []string{"remaining  0 of 4"}, "inspect", rules, "api", hash, "--key")

	says(t, 0, []string{"5000/10s"}, "override", rules, "api", "s3cret", "5000/10s", "--for", "2h")
	says(t, 0, []string{"by an override", "5000/10s"}, request...)
	says(t, 0, []string{"by an override"}, "inspect", rules, "api", "s3cret")
	says(t, 0, []string{"cleared"}, "override", rules, "api", "s3cret", "--clear")
	says(t, 1, nil, request...)

	says(t, 0, []string{"reset, 4 remaining"}, "reset", rules, "api", "s3cret")
	says(t, 0, []string{"would pass"}, request...)

	if err := server.Client().HSet(t.Context(), "sluice:{"+hash+"}:api:token_bucket", "spent", "much").Err(); err != nil {
		t.Fatal(err)
	}
	says(t, 0, []string{"damaged", "sluice reset heals it", "spent=much"}, "inspect", rules, "api", "s3cret")
	says(t, 1, []string{"unknown", "state unusable"}, request...)
	says(t, 0, nil, "reset", rules, "api", "s3cret", "--json")
	says(t, 1, []string{"nothing is kept"}, "inspect", rules, "api", "s3cret")

	proxied := write(t, "trusted_proxies: [10.0.0.0/8]\nrules:\n  - {name: a, match: /, limits: [{algorithm: fixed_window, limit: 1/s, subject: ip}]}\n")
	forwarded := []string{"explain", proxied, "-H", "X-Forwarded-For: 192.0.2.9, 192.0.2.1, 10.0.0.2", "--ip"}
	says(t, 0, []string{"subject  192.0.2.1\n"}, append(forwarded, "10.0.0.1")...)
	says(t, 0, []string{"subject  192.0.2.77\n"}, append(forwarded, "192.0.2.77")...)

	says(t, 1, []string{"nothing is kept"}, "inspect", rules, "login/fixed_window-global") // needs no subject
	says(t, 0, []string{"hidden: rule api: /api/"}, "explain", rules, "--path", "/api/orders")
	says(t, 0, []string{"ok    rights"}, "doctor", rules)
}

// Operators reach subjects of any bytes: those of a path may be no UTF-8.
func TestSubjectOfAnyBytes(t *testing.T) {
	server := redistest.Start(t)
	rules := write(t, "store: {redis: 'redis://"+server.Addr+"', timeout: 5s}\nrules:\n"+
		"  - {name: files, match: '/f/{name}', limits: [{algorithm: token_bucket, limit: 2/h, burst: 4, subject: 'path:name'}]}\n")
	store := redis.New(server.Client(), redis.Options{Timeout: 5 * time.Second})
	defer store.Close()
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 2, Period: time.Hour, Burst: 4}))
	files := sluice.New(store, st, "files")
	for i, subject := range []string{"\xff", "\xfe\xff", "\uFFFD"} {
		n := int64(i + 1)
		if d, err := files.AllowN(t.Context(), "path:"+subject, n); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		left := fmt.Sprint("remaining  ", 4-n, " of 4")
		says(t, 0, []string{left}, "inspect", rules, "files", subject)
		says(t, 0, []string{"subject  " + printable("path:"+subject) + "\n"}, "explain", rules, "--path", "/f/"+url.PathEscape(subject))
	}
	says(t, 0, []string{"reset, 4 remaining"}, "reset", rules, "files", "\xff")
	says(t, 1, []string{"nothing is kept"}, "inspect", rules, "files", "\xff")
	says(t, 0, []string{"remaining  2 of 4"}, "inspect", rules, "files", "\xfe\xff")
	says(t, 0, []string{"remaining  1 of 4"}, "inspect", rules, "files", "\uFFFD")
	says(t, 0, []string{"sluice:{path:%FF}:files:token_bucket"}, "script", "token_bucket", "--limit", "2/h", "--rule", "files", "--subject", "path:\xff")
	says(t, 0, []string{"9/h"}, "override", rules, "files", "\xff", "9/h")
	says(t, 0, []string{"9 of 9", "by an override"}, "explain", rules, "--path", "/f/%FF")
	says(t, 0, []string{"4 of 4"}, "explain", rules, "--path", "/f/%FD")
}

// What --json prints is one object, with nothing beside it.
func TestOperatorJSON(t *testing.T) {
	server := redistest.Start(t)
	rules := write(t, strings.ReplaceAll(operated, "ADDR", server.Addr))
	object := func(exit int, into any, words ...string) {
		t.Helper()
		code, out, _ := call(t, append(words, "--json")...)
		d := json.NewDecoder(strings.NewReader(out))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil || d.More() || code != exit {
			t.Errorf("%q: %v, exit %d: %s", words, err, code, out)
		}
	}
	var e explainedJSON
	object(0, &e, "explain", rules, "--path", "/api/orders")
	if !e.Passes || !e.Known || e.OnOutage != "deny" || len(e.Rules) != 1 || e.Rules[0].Limits[0].Remaining != 5 || fmt.Sprint(e.Hidden) != "[api]" {
		t.Errorf("explain: %+v", e)
	}
	e = explainedJSON{}
	object(1, &e, "explain", rules, "--path", "/api/orders", "--cost", "6")
	if e.Passes || e.RetryAfter != nil {
		t.Errorf("explain of a cost that never passes: %+v", e)
	}
	var i inspectedJSON
	object(1, &i, "inspect", rules, "api", "s3cret")
	if i.Known || i.Remaining != 4 || i.Key == "" {
		t.Errorf("inspect: %+v", i)
	}
	var d diffJSON
	object(1, &d, "diff", example, rules)
	if !d.StartsAfresh || !d.Restart || len(d.Limits) == 0 {
		t.Errorf("diff: %+v", d)
	}
	var h diagnosis
	object(0, &h, "doctor", rules)
	if !h.Healthy || len(h.Findings) != 10 {
		t.Errorf("doctor: %+v", h)
	}
}
