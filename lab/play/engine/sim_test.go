package engine

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// snapshot is all that the page shows.
func snapshot(s *Sim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %v %v\n", s.Now(), s.Decided(), s.Up(), s.Setup())
	for i, l := range s.Lanes() {
		fmt.Fprintf(&b, "%s %+v %v %+v\n", l.Name, l.Figures, l.Level, l.Last)
		s.Timeline(i, func(began int64, c Bin) { fmt.Fprint(&b, began, c) })
	}
	return b.String()
}

// Whatever the user does, a step back and forward again leads to the same moment, and going back to the beginning and
// forward again, too: outages, bursts and moved sliders included.
func TestBackAndForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		sim := openSim(t, s.String())
		for range rapid.IntRange(1, 12).Draw(t, "actions") {
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0:
				sim.Advance(sim.Now() + rapid.Int64Range(0, 2*second).Draw(t, "by"))
			case 1:
				sim.Step()
			case 2:
				sim.Back()
			case 3:
				sim.Burst(rapid.Int64Range(1, 9).Draw(t, "size"))
			case 4:
				sim.Redis(!sim.Up())
			case 5:
				to := drawSetup(t)
				if err := sim.Change(to); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !sim.Step() {
			return
		}
		want, decided := snapshot(sim), sim.Decided()
		back := rapid.Int64Range(1, decided).Draw(t, "back")
		for range back {
			if !sim.Back() {
				t.Fatalf("no way back from %d", sim.Decided())
			}
		}
		if sim.Decided() != decided-back {
			t.Fatalf("%d back from %d is %d", back, decided, sim.Decided())
		}
		for range back {
			sim.Step()
		}
		if got := snapshot(sim); got != want {
			t.Errorf("forward again:\n%s\nwant\n%s", got, want)
		}
	})
}

// A long run keeps few copies, and goes back from anywhere.
func TestBackFromFar(t *testing.T) {
	sim := openSim(t, "rate=120000&period=1000&count=100&burst=100")
	sim.Advance(100 * second) // 200,000 requests
	if n := len(sim.copies); n > mostCopies {
		t.Errorf("%d copies, want at most %d", n, mostCopies)
	}
	want := snapshot(sim)
	sim.Back()
	sim.Step()
	sim.Advance(100 * second)
	if got := snapshot(sim); got != want {
		t.Error("not the same after a step back")
	}
}

// What was done in a future that the user went back from is forgotten once something else is done.
func TestActionsAfterBack(t *testing.T) {
	sim := openSim(t, "traffic=quiet")
	sim.Burst(3)
	for range 3 {
		sim.Step()
	}
	if sim.Step() {
		t.Fatal("a fourth of three")
	}
	for range 3 {
		sim.Back()
	}
	sim.Burst(2)
	for sim.Step() {
	}
	if got := sim.Decided(); got != 2 {
		t.Errorf("%d decided, want the 2 of the second burst alone", got)
	}
	sim = openSim(t, "traffic=quiet")
	if sim.Back() || sim.Step() {
		t.Error("there is nothing before or after")
	}
}

// Everything is counted once: in the figures, and in the columns as long as they show the whole run.
func TestColumnsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sim := openSim(t, drawSetup(t).String())
		sim.Advance(4 * second)
		sim.Redis(false)
		sim.Advance(7 * second)
		sim.Redis(true)
		sim.Advance(9 * second)
		for i, l := range sim.Lanes() {
			var sum Bin
			sim.Timeline(i, func(_ int64, c Bin) {
				sum.Allowed += c.Allowed
				sum.Delayed += c.Delayed
				sum.Denied += c.Denied
			})
			f := l.Figures
			if f.Asked != f.Allowed+f.Denied || f.Asked != sim.Decided() || int64(sum.Delayed) != f.Delayed ||
				int64(sum.Allowed+sum.Delayed) != f.Allowed || int64(sum.Denied) != f.Denied {
				t.Errorf("%s: columns %+v, figures %+v, decided %d", l.Name, sum, f, sim.Decided())
			}
		}
	})
}

// The largest count keeps what the algorithms promise: Burst + rate·T, and Count in each window.
func TestLargestKeepsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		sim := openSim(t, s.String())
		sim.Advance(9 * second)
		window := s.Period // as T
		for _, l := range sim.Lanes() {
			most := l.Limit.Burst + l.Limit.Count*window/s.Period
			if l.Limit.Burst == 0 {
				most = 3 * l.Limit.Count // a closed window of one period touches up to three
			}
			if l.Figures.Largest > most {
				t.Errorf("%s: %d in one period, want at most %d", l.Name, l.Figures.Largest, most)
			}
		}
	})
}

// In an outage, a fleet with shares admits what one limiter would, and one without its number of instances times that.
func TestOutageShare(t *testing.T) {
	sim := openSim(t, "view=outage&count=100&burst=100&rate=60000&instances=4")
	sim.Advance(3 * second)
	sim.Redis(false)
	sim.Advance(13 * second)
	for name, want := range map[string]float64{"share": 1000, "whole": 4000, "allow": 10000, "deny": 0} {
		if got := float64(laneOf(t, sim, name).Figures.AwayAllowed); math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %v admitted in 10 s, want about %v", name, got, want)
		}
	}
	sim.Redis(true)
	if l := laneOf(t, sim, "share"); l.Level < 98 {
		t.Errorf("Redis comes back with %v of 100 spent: it was told nothing of the outage", l.Level)
	}
}

// A state survives a moved limit, as it does in the engine.
func TestChangeKeepsWhatIsSpent(t *testing.T) {
	sim := openSim(t, "traffic=quiet&count=1&period=60000&burst=10")
	sim.Burst(10)
	sim.Advance(1)
	to := sim.Setup()
	to.Burst = 12
	if err := sim.Change(to); err != nil {
		t.Fatal(err)
	}
	if l := laneOf(t, sim, "token_bucket"); math.Abs(l.Level-10) > 0.01 {
		t.Errorf("%v spent after the burst has grown, want 10", l.Level)
	}
	to.Count = 0
	if err := sim.Change(to); err == nil {
		t.Error("a count of 0 was accepted")
	}
}

// A decision's arithmetic in numbers agrees with the decision.
func TestExplain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sim := openSim(t, drawSetup(t).String())
		for range 60 {
			if !sim.Step() {
				return
			}
			for _, l := range sim.Lanes() {
				e, d := l.Explain(*l.Last), l.Last.Decision
				if fits := e.Now+float64(l.Last.N) <= float64(e.Most)+1e-9; fits != d.Allowed {
					t.Fatalf("%s: %+v says %v, Take says %+v", l.Name, e, fits, d)
				}
				if l.Algorithm == "sliding_window" && math.Ceil(float64(e.Previous)*e.Weight-1e-9)+float64(e.Current) != e.Now {
					t.Fatalf("%+v does not add up", e)
				}
				if len(l.Words()) != 3 {
					t.Fatalf("words %v", l.Words())
				}
			}
		}
	})
}

// The fullest closed window, as brute force finds it.
func TestFullest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fullest{length: rapid.Int64Range(1, 50).Draw(t, "length")}
		var all []entry
		at, want := int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			at += rapid.Int64Range(0, 20).Draw(t, "gap")
			all = append(all, entry{at, rapid.Int64Range(1, 5).Draw(t, "n")})
			f.add(at, all[len(all)-1].n)
			if rapid.Bool().Draw(t, "copy") {
				f = f.clone()
			}
		}
		for _, last := range all {
			sum := int64(0)
			for _, e := range all {
				if e.at <= last.at && e.at >= last.at-f.length {
					sum += e.n
				}
			}
			want = max(want, sum)
		}
		if f.most != want {
			t.Errorf("%d in a window of %d, want %d: %v", f.most, f.length, want, all)
		}
	})
}

// The race in a trace is exact for WATCH and Lua whatever the way, and the same for the same seed.
func TestRace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		s.View, s.Period = "race", 60_000
		s.Count = 1
		s.Algorithm = rapid.SampledFrom([]string{"token_bucket", "leaky_bucket"}).Draw(t, "algorithm")
		s.Burst = rapid.Int64Range(1, 20).Draw(t, "burst")
		s.Clients = rapid.Int64Range(1, 100).Draw(t, "clients")
		s.Trip = rapid.Int64Range(50, 5000).Draw(t, "trip")
		s.Seed = rapid.Int64Range(0, 99).Draw(t, "seed")
		a, err := NewTrace(s)
		if err != nil {
			t.Fatal(err)
		}
		want := min(s.Burst, s.Clients)
		for _, l := range a.Lanes[1:] {
			f := l.Figures(a.End)
			if f.Allowed != want || f.Allowed+f.Denied != s.Clients {
				t.Errorf("%s: %+v, want %d of %d to pass", l.Name, f, want, s.Clients)
			}
		}
		if f := a.Lanes[0].Figures(a.End); f.Allowed < want {
			t.Errorf("naive: %+v, want at least %d", f, want)
		}
		if b, _ := NewTrace(s); !reflect.DeepEqual(a, b) {
			t.Error("the same seed gives another trace")
		}
		at, steps := int64(-1), 0
		for next, ok := a.Next(at); ok; next, ok = a.Next(at) {
			if last, ok := a.Previous(next); steps > 0 && (!ok || last != at) {
				t.Fatalf("%d comes after %d, and before it %d", next, at, last)
			}
			at, steps = next, steps+1
		}
		if _, ok := a.Previous(0); ok {
			t.Error("something before the beginning")
		}
	})
}
