package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// soonest is a context's end in tests of cancellation; an experiment then ends well before soon.
const soonest = 100 * time.Millisecond

var snake = regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)

// formed fails where a result lacks a part, has another name's rows, or can't be written in one of the forms.
func formed(t *testing.T, r Result, experiment string, rows ...string) {
	t.Helper()
	if r.Experiment != experiment || r.Title == "" || len(r.Intro) == 0 || len(r.Notes) == 0 || len(r.Charts) == 0 {
		t.Errorf("%s: a part is missing: %+v", experiment, r)
	}
	var names []string
	for _, row := range r.Results {
		names = append(names, row.Name)
		for _, f := range row.Figures {
			if !snake.MatchString(f.Name) {
				t.Errorf("%s: figure %q: want snake_case", experiment, f.Name)
			}
		}
	}
	if strings.Join(names, " ") != strings.Join(rows, " ") {
		t.Errorf("%s: rows %q, want %q", experiment, names, rows)
	}
	for _, f := range r.Params {
		if !snake.MatchString(f.Name) {
			t.Errorf("%s: param %q: want snake_case", experiment, f.Name)
		}
	}
	var text, page, object, table bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteHTML(&page), r.WriteJSON(&object), r.WriteCSV(&table)); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(object.Bytes()) {
		t.Errorf("%s: no JSON: %s", experiment, &object)
	}
	if lines, err := csv.NewReader(&table).ReadAll(); err != nil || len(lines) < 1+len(rows) {
		t.Errorf("%s: %d lines of CSV, %v", experiment, len(lines), err)
	}
	for _, form := range []string{text.String(), page.String()} {
		if strings.Contains(form, "NaN") || strings.Contains(form, "%!") {
			t.Errorf("%s: NaN or a wrong format in\n%s", experiment, form)
		}
	}
}

// refused fails unless each edit of the zero params is refused with its text.
func refused[P interface{ Check() error }](t *testing.T, edits map[string]func(*P)) {
	t.Helper()
	var zero P
	if err := zero.Check(); err != nil {
		t.Errorf("the zero params: %v", err)
	}
	for want, edit := range edits {
		var p P
		edit(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// ends fails unless an experiment ends soon after its context does, with the context's error.
func ends(t *testing.T, experiment func(context.Context) (Result, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soonest)
	defer cancel()
	start := time.Now()
	if _, err := experiment(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > soon {
		t.Errorf("%v after %v: want the context's error", err, time.Since(start))
	}
}

// An experiment that is refused starts nothing; one whose server does not start says why.
func TestExperimentsRefuse(t *testing.T) {
	ctx := t.Context()
	for name, run := range map[string]func(server string, bad int) error{
		"race":  func(s string, bad int) error { _, err := Race(ctx, RaceParams{Server: s, Callers: bad}); return err },
		"block": func(s string, bad int) error { _, err := Block(ctx, BlockParams{Server: s, Entries: bad}); return err },
		"ttl":   func(s string, bad int) error { _, err := TTL(ctx, TTLParams{Server: s, Visitors: bad}); return err },
		"precision": func(s string, bad int) error {
			_, err := Precision(ctx, PrecisionParams{Server: s, Requests: bad})
			return err
		},
	} {
		if err := run("false", -1); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s, wrong params: %v", name, err)
		}
		if err := run("false", 0); err == nil || !strings.Contains(err.Error(), "ended at once") {
			t.Errorf("%s, no server: %v", name, err)
		}
	}
	if _, err := Clock(ctx, ClockParams{Clients: -1}); err == nil {
		t.Error("clock: -1 clients")
	}
}
