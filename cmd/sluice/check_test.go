package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// check names the broader rules that each rule hides, and what lets a client go unlimited.
func TestCheckTellsWhatIsHidden(t *testing.T) {
	path := write(t, `
rules:
  - name: site
    match: /
    limits: [{algorithm: fixed_window, limit: 100/s, subject: ip}]
  - name: api
    match: /api/
    limits:
      - {algorithm: fixed_window, limit: 10/s, subject: "header:X-API-Key"}
      - {algorithm: fixed_window, limit: 10/s, subject: "query:key", name: q}
  - name: me
    match: GET /api/users/me
    exempt: ["header:X-Probe=env:SLUICE_TEST_NONE"]
    limits: [{algorithm: fixed_window, limit: 1/s, subject: ip}]
  - name: all
    match: always
    exempt: [10.0.0.0/8]
    limits: [{algorithm: fixed_window, limit: 1000/s, subject: global}]
`)
	var out, err bytes.Buffer
	if exit := run(t.Context(), []string{"check", path}, &out, &err); exit != 0 {
		t.Errorf("exit %d, want 0: no secret is read", exit)
	}
	want := path + ": valid, 4 rules\n" +
		"api: its requests are not limited by the broader site\n" +
		"me: its requests are not limited by the broader site, api\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if got := err.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, path+": warning: rules[1].limits: each is by a header, cookie or query") {
		t.Errorf("stderr %q, want one warning of rules[1]", got)
	}

	out.Reset()
	run(t.Context(), []string{"check", "--json", path}, &out, &err)
	var got checked
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Hidden) != "[{api [site]} {me [site api]}]" || len(got.Warnings) != 1 || len(got.Faults) != 0 {
		t.Errorf("got %+v", got)
	}
}

// A program that reads the answer finds lists, also where they are empty.
func TestCheckJSONHasLists(t *testing.T) {
	var out, err bytes.Buffer
	run(t.Context(), []string{"check", "--json", example}, &out, &err)
	for _, list := range []string{`"faults": []`, `"hidden": []`, `"warnings": []`} {
		if !strings.Contains(out.String(), list) {
			t.Errorf("%s: no %s", &out, list)
		}
	}
}
