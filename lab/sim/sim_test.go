package sim_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/lab/sim"
	"github.com/sluice-go/sluice/policy"
)

func newLimiter(t testing.TB, name string, l algorithm.Limit) sim.Limiter {
	t.Helper()
	limiter, err := sim.New(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func run(t testing.TB, name string, l algorithm.Limit, a sim.Arrivals, o sim.Options) sim.Figures {
	t.Helper()
	f, err := sim.Run(newLimiter(t, name, l), a, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var (
	tenASecond = algorithm.Limit{Count: 10, Period: time.Second}
	minute     = algorithm.Limit{Count: 600, Period: time.Minute}
)

// The names are those of the rule file, and the oracle's.
func TestAlgorithmsAreThePolicys(t *testing.T) {
	if got, want := sim.Algorithms(), append(policy.Algorithms(), sim.ExactLog); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, name := range policy.Algorithms() {
		theirs, err := policy.NewStrategy(name, algorithm.Limit{Count: 7, Period: time.Second, Burst: 7})
		if err != nil {
			t.Fatal(err)
		}
		if mine := newLimiter(t, name, algorithm.Limit{Count: 7, Period: time.Second}); mine.Limit().Count != theirs.Limit().Count {
			t.Errorf("%s: %v, want %v", name, mine.Limit(), theirs.Limit())
		}
	}
}

// Around a minute's end, at 100 a second from 10 s before it to 10 s after it, of 600 a minute.
func TestBoundaryFigures(t *testing.T) {
	a := sim.Traffic{Shape: sim.Boundary{Rate: 100, Period: time.Minute, Around: 10 * time.Second}}
	o := sim.Options{Duration: 70 * time.Second, Windows: []time.Duration{20 * time.Second}}
	for name, want := range map[string][4]int64{ // half-open, closed, acting, acting closed
		"token_bucket":   {799, 800, 799, 800},
		"fixed_window":   {1200, 1200, 1200, 1200},
		"sliding_window": {699, 700, 699, 700},
		"leaky_bucket":   {799, 800, 200, 201},
		sim.ExactLog:     {600, 600, 600, 600},
	} {
		f := run(t, name, minute, a, o)
		w := f.Windows[0]
		if got := [4]int64{w.HalfOpen, w.Closed, w.Acting, w.ActingTo}; got != want || f.Asked != 2001 {
			t.Errorf("%s: %v of %d, want %v of 2001", name, got, f.Asked, want)
		}
	}
}

// From full, a token bucket of 10/s and 10 lets 20 through in the closed first second, 19 in any half-open one.
func TestGreedyFigures(t *testing.T) {
	for name, want := range map[string][2]int64{
		"token_bucket": {19, 20}, "fixed_window": {10, 20}, "sliding_window": {10, 10}, "leaky_bucket": {19, 20}, sim.ExactLog: {10, 20},
	} {
		f := run(t, name, tenASecond, sim.Greedy{}, sim.Options{Duration: time.Second})
		if got := [2]int64{f.Windows[0].HalfOpen, f.Windows[0].Closed}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// The same seed gives the same run, another seed another.
func TestDeterministic(t *testing.T) {
	a := sim.Traffic{Shape: sim.Poisson{Rate: 40}, Subjects: 5, Skew: 1, MostCost: 3}
	o := sim.Options{Duration: time.Minute, Clients: sim.Clients{Manners: sim.Backoff}, Seed: 7}
	trail := func(seed uint64) (events []sim.Event, f sim.Figures) {
		o.Seed = seed
		o.Observe = func(e *sim.Event) { events = append(events, *e) }
		return events, run(t, "token_bucket", tenASecond, a, o)
	}
	first, figures := trail(7)
	again, same := trail(7)
	if !reflect.DeepEqual(first, again) || !reflect.DeepEqual(figures, same) {
		t.Error("two runs of one seed differ")
	}
	if other, _ := trail(8); reflect.DeepEqual(first, other) {
		t.Error("two seeds give the same run")
	}
	if len(first) != int(figures.Asked) || figures.Retries == 0 {
		t.Errorf("%d events: %+v", len(first), figures)
	}
	last := int64(-1)
	for i, e := range first {
		if e.At < last || e.Now-e.At != first[0].Now-first[0].At {
			t.Fatalf("event %d at %d after %d", i, e.At, last)
		}
		last = e.At
	}
}

// A decision is the strategy's own: the state before it and the time give the same state after it.
func TestEventsAreTheStrategys(t *testing.T) {
	for _, name := range policy.Algorithms() {
		l := algorithm.Limit{Count: 10, Period: time.Second}
		if policy.HasBurst(name) {
			l.Burst = 10
		}
		st, err := policy.NewStrategy(name, l)
		if err != nil {
			t.Fatal(err)
		}
		states := map[int]algorithm.State{}
		run(t, name, tenASecond, sim.Traffic{Shape: sim.Poisson{Rate: 60}, Subjects: 3, MostCost: 4}, sim.Options{
			Duration: 10 * time.Second,
			Observe: func(e *sim.Event) {
				after, d := st.Take(states[e.Subject], e.Now, e.N)
				if e.Before != states[e.Subject] || e.After != after || e.Decision != d {
					t.Fatalf("%s: %+v, want %v and %+v", name, *e, after, d)
				}
				states[e.Subject] = after
			},
		})
	}
}

// What the manners of clients lead to, of a burst of 20 on a token bucket of 10 a second with a burst of 10.
func TestManners(t *testing.T) {
	burst := sim.Traffic{Shape: sim.Bursts{Size: 20, Every: time.Hour}}
	for _, c := range []struct {
		clients             sim.Clients
		asked, admitted     int64
		lost, leastP99, p99 int64 // ms
	}{
		{sim.Clients{}, 20, 10, 10, 0, 0},
		// Ten are told 100 ms, one of them passes then; so 10 + 9 + … + 1 tries more.
		{sim.Clients{Manners: sim.Polite, Tries: 100}, 20 + 55, 20, 0, 1000, 1000},
		{sim.Clients{Manners: sim.Polite, Tries: 2}, 30, 11, 9, 100, 100},
		// At 0, 10, …, 90 ms nobody passes, and ten tries are up.
		{sim.Clients{Manners: sim.Rude}, 20 + 90, 10, 10, 0, 0},
		{sim.Clients{Manners: sim.Rude, Tries: 1000}, 20 + 55*10, 20, 0, 1000, 1000},
		{sim.Clients{Manners: sim.Backoff, Tries: 1000}, 0, 20, 0, 500, 60000},
	} {
		f := run(t, "token_bucket", tenASecond, burst, sim.Options{Duration: 10 * time.Minute, Clients: c.clients})
		if c.asked != 0 && f.Asked != c.asked || f.Admitted != c.admitted || f.Lost != c.lost {
			t.Errorf("%+v: %+v, want %+v", c.clients, f, c)
		}
		if got := f.WaitMost.Milliseconds(); got < c.leastP99 || got > c.p99 {
			t.Errorf("%+v: longest wait %d ms, want %d to %d", c.clients, got, c.leastP99, c.p99)
		}
	}
	// A request that never can pass does not come back.
	big := sim.Traffic{Shape: sim.Bursts{Size: 1, Every: time.Hour}, Cost: 11}
	if f := run(t, "token_bucket", tenASecond, big, sim.Options{Duration: time.Minute, Clients: sim.Clients{Manners: sim.Rude}}); f.Asked != 1 || f.Lost != 1 {
		t.Errorf("%+v", f)
	}
}

// One key is one limit for all; else each has its own.
func TestOneKey(t *testing.T) {
	a := sim.Traffic{Shape: sim.Constant{Rate: 400}, Subjects: 4}
	each := run(t, "fixed_window", tenASecond, a, sim.Options{Duration: 9_999 * time.Millisecond})
	one := run(t, "fixed_window", tenASecond, a, sim.Options{Duration: 9_999 * time.Millisecond, OneKey: true})
	if each.UnitsAdmitted != 400 || one.UnitsAdmitted != 100 || each.Fairness != 1 || each.Subjects != 4 || one.Subjects != 4 {
		t.Errorf("each %+v, one %+v", each, one)
	}
}

func TestWasted(t *testing.T) {
	// 20 a second for a second, none for a second: the limit's rate has room for all of them over the run.
	a := sim.Traffic{Shape: sim.OnOff{Rate: 20, On: time.Second, Off: time.Second}}
	o := sim.Options{Duration: 10*time.Second - time.Microsecond}
	if f := run(t, "fixed_window", tenASecond, a, o); f.UnitsAsked != 100 || f.UnitsAdmitted != 50 || f.Wasted < 49.9 || f.Wasted > 50 {
		t.Errorf("%+v", f)
	}
	if f := run(t, "token_bucket", tenASecond, a, o); f.UnitsAdmitted < 95 || f.Wasted > 5 {
		t.Errorf("%+v", f)
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{nil, 1}, {[]float64{0, 0}, 1}, {[]float64{3, 3, 3}, 1}, {[]float64{5, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}} {
		if got := sim.Jain(c.x); got != c.want {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
}

func TestChecks(t *testing.T) {
	good := sim.Traffic{Shape: sim.Constant{Rate: 1}}
	for want, c := range map[string]struct {
		a sim.Arrivals
		o sim.Options
	}{
		"Shape":           {sim.Traffic{}, sim.Options{}},
		"Subjects -1":     {sim.Traffic{Shape: sim.Constant{Rate: 1}, Subjects: -1}, sim.Options{}},
		"Skew NaN":        {sim.Traffic{Shape: sim.Constant{Rate: 1}, Skew: nan()}, sim.Options{}},
		"Cost -1":         {sim.Traffic{Shape: sim.Constant{Rate: 1}, Cost: -1}, sim.Options{}},
		"MostCost 2":      {sim.Traffic{Shape: sim.Constant{Rate: 1}, Cost: 3, MostCost: 2}, sim.Options{}},
		"Rate 0":          {sim.Traffic{Shape: sim.Constant{}}, sim.Options{}},
		"Rate NaN":        {sim.Traffic{Shape: sim.Poisson{Rate: nan()}}, sim.Options{}},
		"Rate 2e+06":      {sim.Traffic{Shape: sim.Poisson{Rate: 2e6}}, sim.Options{}},
		"Size 0":          {sim.Traffic{Shape: sim.Bursts{Every: time.Second}}, sim.Options{}},
		"Every 0s":        {sim.Traffic{Shape: sim.Bursts{Size: 1}}, sim.Options{}},
		"On 0s":           {sim.Traffic{Shape: sim.OnOff{Rate: 1}}, sim.Options{}},
		"Off -1ns":        {sim.Traffic{Shape: sim.OnOff{Rate: 1, On: 1e9, Off: -1}}, sim.Options{}},
		"Around 31s":      {sim.Traffic{Shape: sim.Boundary{Rate: 1, Period: time.Minute, Around: 31 * time.Second}}, sim.Options{}},
		"Peak 3":          {sim.Traffic{Shape: sim.Diurnal{Rate: 1, Peak: 3, Day: time.Hour}}, sim.Options{}},
		"Day 0s":          {sim.Traffic{Shape: sim.Diurnal{Rate: 1, Peak: 2}}, sim.Options{}},
		"no request":      {sim.Trace{}, sim.Options{}},
		"Duration -1ns":   {good, sim.Options{Duration: -1}},
		"Start -1":        {good, sim.Options{Start: -1}},
		"Windows 0s":      {good, sim.Options{Windows: make([]time.Duration, 1)}},
		"want at most 16": {good, sim.Options{Windows: make([]time.Duration, 17)}},
		"Manners 9":       {good, sim.Options{Clients: sim.Clients{Manners: 9}}},
		"Pause 1ns":       {good, sim.Options{Clients: sim.Clients{Pause: 1}}},
		"Tries 1001":      {good, sim.Options{Clients: sim.Clients{Tries: 1001}}},
	} {
		if _, err := sim.Run(newLimiter(t, "token_bucket", tenASecond), c.a, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	for _, bad := range []string{"", "magic"} {
		if _, err := sim.New(bad, tenASecond); err == nil || !strings.Contains(err.Error(), "exact_log") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := sim.New(sim.ExactLog, algorithm.Limit{Count: 0, Period: time.Second}); err == nil {
		t.Error("an exact log of 0")
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

// Memory does not grow with the length of a run.
func TestStreams(t *testing.T) {
	s, err := sim.Begin(newLimiter(t, "sliding_window", tenASecond), sim.Traffic{Shape: sim.Poisson{Rate: 100}, Subjects: 3}, sim.Options{Duration: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		s.Next()
	}
	if n := testing.AllocsPerRun(10_000, func() { s.Next() }); n > 0 {
		t.Errorf("%v allocations a decision", n)
	}
}

// What a decision costs in Redis: the text of a key's hash, and the commands of a script.
func TestCosts(t *testing.T) {
	for name, want := range map[string]struct {
		size  int // of the key after one charge of 2
		calls [2]int
	}{
		"token_bucket":   {len("spent200000ts1700000000000000unit100000"), [2]int{4, 2}},
		"fixed_window":   {len("count2start1700000000000000period1000000"), [2]int{4, 2}},
		"sliding_window": {len("previous0current2start1700000000000000"), [2]int{4, 2}},
		"leaky_bucket":   {len("queued200000ts1700000000000000unit100000"), [2]int{4, 2}},
		sim.ExactLog:     {2 * 32, [2]int{5, 3}},
	} {
		l := newLimiter(t, name, tenASecond)
		if l.Size(0) != 0 {
			t.Errorf("%s: an unseen key has %d bytes", name, l.Size(0))
		}
		l.Take(0, 1_700_000_000_000_000, 2)
		if got := l.Size(0); got != want.size || l.Size(1) != 0 {
			t.Errorf("%s: %d bytes, want %d", name, got, want.size)
		}
		if got := [2]int{l.Calls(true, 1), l.Calls(false, 1)}; got != want.calls || l.Calls(true, 0) != want.calls[1] {
			t.Errorf("%s: calls %v, want %v", name, got, want.calls)
		}
	}
	// 10 pass of 30 at once, in requests of 2.
	f := run(t, "fixed_window", tenASecond, sim.Traffic{Shape: sim.Bursts{Size: 15, Every: time.Hour}, Cost: 2}, sim.Options{Duration: 2 * time.Second})
	if want := (5*4. + 10*2.) / 15; f.Calls != want || f.Wasted != 10 || f.UnitsAsked != 30 || f.UnitsAdmitted != 10 {
		t.Errorf("%+v, want %v calls and 10 wasted", f, want)
	}
}
