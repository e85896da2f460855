package algorithmtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/algorithm"
)

var update = flag.Bool("update", false, "rewrite the results in testdata/*.txt; read them in review")

// base is time 0 of a vector file: 2023-11-14 22:13:20 UTC, in µs since the Unix epoch. It is a multiple of 10 s, 20 s
// into its minute and 800 s into its hour.
const base = 1_700_000_000_000_000

// Vectors runs the histories in the files that match a pattern, such as "testdata/*.txt", through the Go and the Lua
// half of an algorithm, and compares decisions and words with those in the file. A file reads:
//
//	# Ten a second, five at once. The first sight of a key finds a full bucket.
//	limit 10/s burst 5
//	at=0 n=3 -> allow remaining=2 reset=300ms | spent=300000 ts=1700000000000000 unit=100000
//	at=+50ms n=3 -> deny remaining=2 retry=50ms reset=250ms | spent=300000 ts=1700000000000000 unit=100000
//
// Lines before the arrow are the author's, the rest is written by -update:
//
//	# text           a comment, kept; so are blank lines
//	limit L          goes on under this limit, on the same state: first line, or an edit. As ParseLimit, then burst N
//	fresh            forgets the state, and goes on under the same limit
//	at=T n=N         takes N at T after 2023-11-14 22:13:20 UTC (1700000000 s); T is a duration, and may step back
//	at=T upto=N      takes as much of N as fits: charged= says how much
//	at=T adjust=N was=T  adjusts by N what was charged at was
//
// A result is allow or deny; charged under upto; what remains; retry of a denial, or never; reset; delay if there is
// one; and, after the bar, the words of the state kept, by the names in [algorithm.Script].
func Vectors(t *testing.T, pattern string, build New) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no vector files match %q: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { vectorFile(t, file, build) })
	}
}

func vectorFile(t *testing.T, file string, build New) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := vectors{build: build, comparison: comparison{twins: map[*algorithm.Script]*Twin{}}}
	defer v.close()
	lines := strings.Split(string(text), "\n")
	calls := 0
	for i, line := range lines {
		ask, want, isCall := strings.Cut(line, " -> ")
		ask = strings.TrimSpace(ask)
		if ask == "" || strings.HasPrefix(ask, "#") {
			continue
		}
		got, err := v.line(t, i+1, ask)
		if err != nil {
			t.Fatalf("%s:%d: %s: %v", file, i+1, ask, err)
		}
		if got == "" {
			continue
		}
		calls++
		if *update {
			lines[i] = ask + " -> " + got
		} else if !isCall || got != want {
			t.Errorf("%s:%d: %s\ngot  %s\nwant %s", file, i+1, ask, got, want)
		}
	}
	t.Logf("%d calls", calls)
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// vectors is a history under way.
type vectors struct {
	comparison
	build    New
	strategy algorithm.Strategy
}

// line runs one line, and returns the result of a call.
func (v *vectors) line(t *testing.T, number int, text string) (string, error) {
	switch word, rest, _ := strings.Cut(text, " "); word {
	case "limit":
		l, err := parseLimit(rest)
		if err != nil {
			return "", err
		}
		v.strategy, err = v.build(l)
		return "", err
	case "fresh":
		v.state = algorithm.State{}
		return "", nil
	}
	c, err := parseCall(text)
	if err != nil {
		return "", err
	}
	return v.call(t, number, c)
}

// call runs a call through both halves.
func (v *vectors) call(t *testing.T, number int, c call) (string, error) {
	if v.strategy == nil {
		return "", errNoLimit
	}
	s := Step{Strategy: v.strategy, Now: clampTime(base + c.at), N: c.n, Adjust: c.adjust, At: base + c.was}
	_, d := v.strategy.Take(v.state, s.Now, s.N)
	if c.upTo {
		_, d = algorithm.UpTo(v.strategy, v.state, s.Now, s.N)
		if d.Charged > 0 {
			s.N = d.Charged
		}
	}
	v.step(t, number, s)
	if c.adjust {
		_, d = v.strategy.Take(v.state, s.Now, 0)
	}
	script, _ := v.strategy.Lua()
	return result(c, d) + " | " + words(script, v.state), nil
}
