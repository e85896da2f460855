package lab

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// sample is a result with a value of each kind.
func sample() Result {
	return Result{
		Experiment: "sample", Title: `What <b>"is"</b> it & why?`, Server: "redis-server 7", Intro: []string{"An introduction."}, Notes: []string{"A note."},
		Params:  Fields{{"period_s", 0.123456}, {"limit", Fields(nil).Get("x")}, {"list", []float64{1, 2}}},
		Command: "sluice lab sample '<x>'",
		Results: []Row{
			{"first_one", Fields{{"admitted", int64(12345)}, {"share", 0.123456}, {"exact", true}, {"per_second", []int64{1, 2}}, {"mode", "a,b"}}},
			{"second", Fields{{"admitted", 7}, {"share", math.NaN()}, {"exact", false}, {"only_here", 1e9}}},
		},
		Charts: []Chart{Bars{Title: "Bars <1>", Bars: []Bar{{"a", 1}}}},
	}
}

func TestResultJSON(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"experiment": "sample", "server": "redis-server 7",
		"params": map[string]any{"period_s": 0.123456, "limit": nil, "list": []any{1., 2.}},
		"results": []any{
			map[string]any{"name": "first_one", "admitted": 12345., "share": 0.123456, "exact": true, "per_second": []any{1., 2.}, "mode": "a,b"},
			map[string]any{"name": "second", "admitted": 7., "share": nil, "exact": false, "only_here": 1e9},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if first, second := strings.Index(b.String(), `"admitted"`), strings.Index(b.String(), `"share"`); first > second {
		t.Error("figures are not in their order")
	}
	b.Reset()
	if err := (Result{Experiment: "none"}).WriteJSON(&b); err != nil || strings.Contains(b.String(), "server") || !strings.Contains(b.String(), `"results": []`) {
		t.Errorf("%s, %v", &b, err)
	}
}

func TestResultCSV(t *testing.T) {
	read := func(r Result) [][]string {
		t.Helper()
		var b bytes.Buffer
		if err := r.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	r := sample()
	if got, want := read(r), [][]string{
		{"name", "admitted", "share", "exact", "mode", "only_here"},
		{"first_one", "12345", "0.123456", "true", "a,b", ""},
		{"second", "7", "NaN", "false", "", "1e+09"},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Lines = []Row{{"first_one", Fields{{"second", 0}, {"admitted", 3}}}}
	if got, want := read(r), [][]string{{"name", "second", "admitted"}, {"first_one", "0", "3"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestResultText(t *testing.T) {
	r := sample()
	show := func() string {
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := `An introduction.

           admitted   share  exact  mode   only here
first one     12345  0.1235    yes   a,b
second            7       -     no        1000000000

A note.
`
	if got := show(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// A table that would be too wide has a line for each figure.
	r.Intro, r.Notes = nil, nil
	for _, name := range strings.Fields("a b c d e f g h i") {
		r.Results[0].Figures = append(r.Results[0].Figures, Field{"a_long_name_" + name, 1})
	}
	if got := show(); !strings.HasPrefix(got, "               first one      second\nadmitted           12345           7\n") || strings.Count(got, "\n") != 15 {
		t.Errorf("got\n%s", got)
	}
}

func TestResultNumbers(t *testing.T) {
	r := sample()
	if first := r.Row("first_one"); first.Number("admitted") != 12345 || first.Number("share") != 0.123456 || r.Row("second").Number("admitted") != 7 {
		t.Errorf("%+v", first)
	}
	if n := r.Row("none").Number("admitted"); !math.IsNaN(n) {
		t.Error(n)
	}
	if n := r.Row("first_one").Number("mode"); !math.IsNaN(n) {
		t.Error(n)
	}
}

// outside is what makes a page load something.
var outside = regexp.MustCompile(`(?i)(src|href|url)\s*[=(]\s*["']?(https?:|//)|<(script|link|iframe|img|object|embed)|@import`)

// The report stands alone, escapes what it is given, and has all parts.
func TestResultHTML(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{
		"<!DOCTYPE html>", "prefers-color-scheme: dark", "What &lt;b&gt;", "on redis-server 7", "An introduction.", "A note.",
		"<svg ", "<title id=\"c-bars-1-title\">Bars &lt;1&gt;</title>", ">12345<", ">0.123456<", "sluice lab sample &#39;&lt;x&gt;&#39;",
		`<th scope="row">only here</th>`, `<th scope="col">first one</th>`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("no %q", part)
		}
	}
	if found := outside.FindString(page); found != "" {
		t.Errorf("the page loads something: %q", found)
	}
	for _, bad := range []string{"<b>", "<x>", "ZgotmplZ", "NaN"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	if err := sample().WriteHTML(failing{}); err == nil {
		t.Error("a write that fails is no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
