package main

import (
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

// What prints stays as it is, byte for byte; all else is quoted, so that it neither acts on a terminal nor makes up lines.
func TestPrintable(t *testing.T) {
	for _, plain := range []string{
		"", "192.0.2.1", "2001:db8::/64", "header:0d23e0b7f5de2a5dac42e899fffb0dad", "path:Käse und Brot", `a"b\c`, "it's", "名前", "\uFFFD", "😀",
	} {
		if got := printable(plain); got != plain {
			t.Errorf("%q prints as %q", plain, got)
		}
	}
	for text, want := range map[string]string{
		"a\x1b[31mb": `"a\x1b[31mb"`, "a\nb": `"a\nb"`, "a\x00": `"a\x00"`, "\xff": `"\xff"`, "a\tb": `"a\tb"`, "\r": `"\r"`,
		"\u202eb": `"\u202eb"`, "\u009b2J": `"\u009b2J"`, "\x7f": `"\x7f"`, "it's\n": `"it\x27s\n"`, "\u00a0": `"\u00a0"`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q prints as %s, want %s", text, got, want)
		}
	}
}

// No command prints a subject, a path or a word of Redis that acts on a terminal.
func TestCommandsPrintNoControls(t *testing.T) {
	server := redistest.Start(t)
	rules := write(t, "store: {redis: 'redis://"+server.Addr+"', timeout: 5s}\nrules:\n"+
		"  - {name: files, match: '/f/{name}', limits: [{algorithm: token_bucket, limit: 2/h, burst: 4, subject: 'path:name'}]}\n")
	store := redis.New(server.Client(), redis.Options{Timeout: 5 * time.Second})
	defer store.Close()
	files := sluice.New(store, sluice.Must(tokenbucket.New(sluice.Limit{Count: 2, Period: time.Hour, Burst: 4})), "files")
	for _, subject := range []string{"\x1b[31m", "a\nb", "a\tb", "\xff", "\u202e", "\u009b2J"} { // a kernel's argument holds no NUL
		if d, err := files.AllowN(t.Context(), "path:"+subject, 1); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		shown := fmt.Sprintf("%q", "path:"+subject)
		says(t, 0, []string{"subject    " + shown + "\n"}, "inspect", rules, "files", subject)
		says(t, 0, []string{"files " + shown + ": 9/h"}, "override", rules, "files", subject, "9/h")
		says(t, 0, []string{"files  " + shown + "  9/h"}, "override", rules, "--list")
		says(t, 0, []string{"subject  " + shown + "\n", fmt.Sprintf("%q from", "GET /f/"+subject)}, "explain", rules, "--path", "/f/"+url.PathEscape(subject))
		says(t, 0, []string{"files " + shown + ": cleared"}, "override", rules, "files", subject, "--clear")
		says(t, 1, []string{"files " + shown + ": there is no override"}, "override", rules, "files", subject, "--clear")
		if out := says(t, 0, nil, "inspect", rules, "files", subject, "--json"); !json.Valid([]byte(out)) {
			t.Errorf("%q: %q is no JSON", subject, out)
		}
	}
	says(t, 0, []string{`"GET /f/\x00" from`}, "explain", rules, "--path", "/f/%00")
	says(t, 0, []string{`127.0.0.1: `}, "explain", rules, "--path", "/f/x")

	const evil = "\x1b[2J\nwarning"
	client := server.Client()
	if err := client.HSet(t.Context(), "sluice:{overrides}", evil+" path:"+evil, `{"limit":"1/s"}`, "files path:"+evil, `{"limit":"1/s"}`,
		"gone path:a", `{"limit":"1/s"}`).Err(); err != nil {
		t.Fatal(err)
	}
	key := store.KeyOf(files.Ask("path:damaged", 1))
	if err := client.HSet(t.Context(), key, "spent", evil, "ts", evil, "unit", evil).Err(); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"override", rules, "--list"}, {"inspect", rules, "files", "damaged"}, {"explain", rules, "--path", "/f/damaged"},
		{"explain", rules, "--path", "/f/x", "--ip", "fe80::1%" + evil}, {"reset", rules, "files", evil},
	} {
		_, out, stderr := call(t, words...)
		if strings.ContainsAny(out+stderr, "\x1b\x00") || strings.Contains(out+stderr, "\nwarning\n") || strings.Contains(out+stderr, "\nwarning:\"") {
			t.Errorf("%q prints %q, stderr %q", words, out, stderr)
		}
	}
	says(t, 0, []string{"warning: service: override of gone for path:a: the rule file has no such limit\n"}, "override", rules, "--list")
}
