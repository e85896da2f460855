package engine

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{ // want: the text again, or a part of the error
		{"", ""},
		{"count=10", ""},
		{"count=7&period=60000", "count=7&period=60000"},
		{"traffic=bursts&view=outage", "view=outage&traffic=bursts"},
		{"&count=7&", "count=7"},
		{"count=7&count=8", "count=8"},
		{"count=0", `count 0: want 1 to 10000`},
		{"count=10001", `count 10001: want 1 to 10000`},
		{"count=-1", `count -1: want 1 to 10000`},
		{"count=x", `count "x": want a whole number`},
		{"count=1.5", `count "1.5": want a whole number`},
		{"count=99999999999999999999", `count "99999999999999999999": want a whole number`},
		{"count", `count "": want a whole number`},
		{"view=all", `view "all": want one of algorithms, outage`},
		{"colour=red", `no field "colour"`},
		{"away=5000&back=5000", `back 5000: want more than away 5000`},
		{"rate=120000&period=60000", `rate 120000: 120000 requests within one window: want at most 50000`},
	} {
		s, err := Parse(c.text)
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if err != nil != strings.Contains(c.want, "want ") && !strings.Contains(c.want, "no field") || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// What Parse accepts runs, and is written as a text that reads the same.
func FuzzParse(f *testing.F) {
	for _, p := range Presets() {
		f.Add(p.Setup)
	}
	f.Add("count=10000&burst=10000&period=86400000&traffic=poisson&clients=200&cost=100&window=3600000")
	f.Add("traffic=boundary&period=100&rate=1")
	f.Add("view=race&clients=200&trip=50&count=10000&burst=10000")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Fatalf("%q is written %q, which reads %+v, %v", text, s, again, err)
		}
		if s.View == "race" || s.View == "block" {
			if _, err := NewTrace(s); err != nil {
				t.Logf("%q: %v", text, err) // a limit that the algorithm refuses
			}
			return
		}
		sim, err := New(s)
		if err != nil {
			return
		}
		for range 20 {
			if !sim.Step() {
				break
			}
		}
		sim.Redis(false)
		sim.Burst(3)
		sim.Advance(sim.Now() + second)
		sim.Redis(true)
		sim.Back()
	})
}
