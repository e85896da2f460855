package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/lab/play/engine"
)

// call is one call of Take or Adjust for the page to repeat, as sluice.take and sluice.adjust have it.
type call struct {
	Algorithm            string
	Count, Period, Burst string // Period in µs
	State                [3]string
	Adjust               bool
	Now, N, At           string
	want                 []string
	where                string
	before, after        algorithm.State
	decision             algorithm.Decision
	vector               string // what the vector file says of the words
}

// The page's engine is compiled to WebAssembly, and answers every call as Go does: over all vectors, and over histories
// that a seed makes up.
func TestEngineEqualsGo(t *testing.T) {
	p := open(t, "", desktop)
	for _, name := range engine.Algorithms() {
		t.Run(name, func(t *testing.T) {
			calls := vectors(t, name)
			if len(calls) < 50 {
				t.Errorf("%d calls in the vectors", len(calls))
			}
			calls = append(calls, histories(name)...)
			compare(t, p, calls)
		})
	}
}

func compare(t *testing.T, p *tab, calls []call) {
	t.Helper()
	asked, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	got := eval[[][]string](p, fmt.Sprintf(`%s.map((c) => c.Adjust
		? sluice.adjust(c.Algorithm, c.Count, c.Period, c.Burst, c.State, c.Now, c.N, c.At)
		: sluice.take(c.Algorithm, c.Count, c.Period, c.Burst, c.State, c.Now, c.N))`, asked))
	if len(got) != len(calls) {
		t.Fatalf("%d answers to %d calls", len(got), len(calls))
	}
	wrong := 0
	for i, c := range calls {
		if g, w := strings.Join(got[i], " "), strings.Join(c.want, " "); g != w && wrong < 5 {
			wrong++
			t.Errorf("%s: %+v\nthe page says %s\nGo says        %s", c.where, c, g, w)
		}
	}
	t.Logf("%d calls", len(calls))
}

// newCall runs a call in Go.
func newCall(name, where string, step algorithmtest.Step, before algorithm.State) call {
	l := step.Strategy.Limit()
	c := call{
		Algorithm: name, where: where, Adjust: step.Adjust, before: before,
		Count: text(l.Count), Period: text(int64(l.Period / time.Microsecond)), Burst: text(l.Burst),
		Now: text(step.Now), N: text(step.N), At: text(step.At),
	}
	for i, word := range before {
		c.State[i] = text(word)
	}
	if step.Adjust {
		c.after = step.Strategy.Adjust(before, step.Now, step.N, step.At)
	} else {
		c.after, c.decision = step.Strategy.Take(before, step.Now, step.N)
	}
	for _, word := range c.after {
		c.want = append(c.want, text(word))
	}
	if d := c.decision; !step.Adjust {
		allowed := "0"
		if d.Allowed {
			allowed = "1"
		}
		c.want = append(c.want, allowed, text(d.Charged), text(d.Limit), text(d.Remaining), micros(d.RetryAfter), micros(d.ResetAfter), micros(d.Delay))
	}
	return c
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func micros(d time.Duration) string {
	if d == algorithm.Never {
		return "-1"
	}
	return text(int64(d / time.Microsecond))
}

func histories(name string) []call {
	build := func(l algorithm.Limit) (algorithm.Strategy, error) { return engine.Strategy(name, l) }
	var calls []call
	var state algorithm.State
	for i, step := range algorithmtest.Histories(1, 5_000, build) {
		if step.Set != nil {
			state = *step.Set
		}
		c := newCall(name, fmt.Sprintf("step %d", i), step, state)
		state = c.after
		calls = append(calls, c)
	}
	return calls
}

// vectors runs an algorithm's vector files in Go, and checks that the words are those of the file. upto is left out: it
// is two calls of Take, of which the files have plenty.
func vectors(t *testing.T, name string) []call {
	t.Helper()
	folder := strings.ReplaceAll(strings.TrimSuffix(name, "_bucket"), "_", "")
	if name == "token_bucket" {
		folder = "tokenbucket"
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "algorithm", folder, "testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors of %s: %v", name, err)
	}
	var calls []call
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, vectorFile(t, name, filepath.Base(file), string(content))...)
	}
	return calls
}

const base = 1_700_000_000_000_000 // µs: time 0 of a vector file

func vectorFile(t *testing.T, name, file, content string) (calls []call) {
	t.Helper()
	var strategy algorithm.Strategy
	var state algorithm.State
	for i, line := range strings.Split(content, "\n") {
		where := fmt.Sprintf("%s:%d", file, i+1)
		ask, result, _ := strings.Cut(line, " -> ")
		word, rest, _ := strings.Cut(ask, " ")
		switch {
		case ask == "" || word == "#" || strings.HasPrefix(word, "#"):
		case word == "fresh":
			state = algorithm.State{}
		case word == "limit":
			limit, burst, _ := strings.Cut(rest, " burst ")
			l, err := algorithm.ParseLimit(limit)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			l.Burst, _ = strconv.ParseInt(burst, 10, 64)
			if strategy, err = engine.Strategy(name, l); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
		default:
			step, upto := parse(t, where, ask)
			step.Strategy = strategy
			if upto {
				state, _ = algorithm.UpTo(strategy, state, step.Now, step.N)
				continue
			}
			c := newCall(name, where, step, state)
			state = c.after
			script, _ := strategy.Lua()
			words := ""
			for i, w := range script.Words {
				words += fmt.Sprintf(" %s=%d", w, state[i])
			}
			if _, want, _ := strings.Cut(result, " |"); words != want {
				t.Fatalf("%s: words %s, the file has %s", where, words, want)
			}
			calls = append(calls, c)
		}
	}
	return calls
}

func parse(t *testing.T, where, ask string) (s algorithmtest.Step, upto bool) {
	t.Helper()
	for _, field := range strings.Fields(ask) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "at", "was":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			at := base + int64(d/time.Microsecond)
			if name == "was" {
				s.At = at
			} else {
				s.Now = min(max(at, 0), algorithm.Bound-1)
			}
		case "n", "upto", "adjust":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			s.N, s.Adjust, upto = n, name == "adjust", name == "upto"
		}
	}
	return s, upto
}
