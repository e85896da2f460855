package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// process is a random arrival process under a random limit.
type process struct {
	limit    algorithm.Limit
	arrivals Arrivals
	options  Options
	mostCost int64
}

func randomProcess(r *rand.Rand) process {
	count := []int64{1, 2, 3, 5, 7, 10, 60, 600}[r.IntN(8)]
	period := []time.Duration{7 * time.Millisecond, time.Second, 1300 * time.Microsecond, 10 * time.Second, time.Minute, 30 * 24 * time.Hour}[r.IntN(6)]
	limit := algorithm.Limit{Count: count, Period: period, Burst: 1 + r.Int64N(2*count)}
	rate := min(float64(count)/period.Seconds()*[]float64{0.5, 1, 1.5, 4, 20}[r.IntN(5)], mostRate)
	part := func(d time.Duration) time.Duration {
		return max(time.Microsecond, time.Duration(r.Int64N(int64(d))).Truncate(time.Microsecond))
	}
	shape := []Shape{
		Constant{rate}, Poisson{rate},
		Bursts{1 + r.IntN(int(2*count)), part(2 * period)},
		OnOff{rate, part(3 * period), part(3 * period)},
		Boundary{rate, period, part(period / 2)},
		Diurnal{rate, 1 + r.Float64(), 4 * period},
	}[r.IntN(6)]
	t := Traffic{Shape: shape, Subjects: 1 + r.IntN(3), Skew: 2 * r.Float64(), Cost: 1}
	if r.IntN(2) == 0 {
		t.MostCost = 1 + r.Int64N(count)
	}
	p := process{limit: limit, arrivals: t, mostCost: max(1, t.MostCost)}
	if r.IntN(8) == 0 {
		p.arrivals, p.mostCost = Greedy{}, 1
	}
	p.options = Options{
		Duration: min(6*period, time.Duration(600/rate*float64(time.Second))), Seed: r.Uint64(), OneKey: r.IntN(2) == 0,
		Start:   1_700_000_000_000_000 + r.Int64N(2*period.Microseconds()), // no window begins with the run
		Clients: Clients{Manners: Manners(r.IntN(4)), Tries: 4, Pause: part(period)},
		Windows: []time.Duration{time.Microsecond, part(period), period, part(3*period) + 1000, 2 * period},
	}
	return p
}

// Over 1,000 random arrival processes, no strategy admits more in any window than it promises, and none but the leaky
// bucket lets act later. What it counts is what brute force counts.
func TestPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	held := 0
	tight := map[string]bool{} // the promise is met exactly
	for i := range 1000 {
		p := randomProcess(r)
		for _, name := range Algorithms() {
			l, err := New(name, p.limit)
			if err != nil {
				t.Fatal(err)
			}
			var admitted, acting []moment
			p.options.Observe = func(e *Event) {
				key := e.Subject
				if p.options.OneKey {
					key = 0
				}
				if e.Decision.Allowed {
					admitted = append(admitted, moment{key, e.At, e.N})
					acting = append(acting, moment{key, e.Acts(), e.N})
				}
			}
			f, err := Run(l, p.arrivals, p.options)
			if err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			slices.SortStableFunc(acting, func(x, y moment) int { return cmp.Compare(x.at, y.at) })
			for _, w := range f.Windows {
				length := w.Length.Microseconds()
				if w.HalfOpen > w.Most {
					t.Errorf("%d %s %v: %d in %v, promised %d: %+v", i, name, p.limit, w.HalfOpen, w.Length, w.Most, p)
				}
				tight[name] = tight[name] || w.HalfOpen == w.Most && w.Length > time.Microsecond
				if i%10 == 0 {
					want := [4]int64{brute(admitted, length-1), brute(admitted, length), brute(acting, length-1), brute(acting, length)}
					if got := [4]int64{w.HalfOpen, w.Closed, w.Acting, w.ActingTo}; got != want {
						t.Errorf("%d %s %v: counts %v, by brute force %v", i, name, w.Length, got, want)
					}
				}
				if name == "leaky_bucket" {
					// Times to act are rounded up to a µs, so those that a half-open time holds may be that much farther apart.
					if most := gained(l.Limit(), length) + p.mostCost; w.Acting > most {
						t.Errorf("%d: %d act in %v, want at most %d: %+v", i, w.Acting, w.Length, most, p)
					}
				} else if w.Acting != w.HalfOpen {
					t.Errorf("%d %s: %d act of %d admitted", i, name, w.Acting, w.HalfOpen)
				}
			}
			if f.Asked != f.Admitted+f.Denied || f.Asked != f.Requests+f.Retries || f.Requests != f.Admitted+f.Lost {
				t.Errorf("%d %s: does not add up: %+v", i, name, f)
			}
			if f.WaitMost > 0 && name == "leaky_bucket" {
				held++
			}
			if name == "fixed_window" || name == "sliding_window" {
				checkAligned(t, name, p, admitted)
			}
		}
	}
	for _, name := range Algorithms() {
		if !tight[name] && name != "sliding_window" { // two counters meet it only where requests end a window exactly
			t.Errorf("%s: no process met its promise exactly: they are too tame, or the promise is too wide", name)
		}
	}
	if held == 0 {
		t.Error("nothing was held")
	}
}

// moment is units of a key at a time.
type moment struct {
	key   int
	at, n int64
}

// brute is the most units of one key in any window, from each of its units on.
func brute(ms []moment, reach int64) (most int64) {
	for i, first := range ms {
		sum := int64(0)
		for _, m := range ms[i:] {
			if m.at > first.at+reach {
				break
			}
			if m.key == first.key {
				sum += m.n
			}
		}
		// those before it in the list at the same time
		for j := i - 1; j >= 0 && ms[j].at == first.at; j-- {
			if ms[j].key == first.key {
				sum += ms[j].n
			}
		}
		most = max(most, sum)
	}
	return most
}

// checkAligned is that no window of the clock admits more than Count.
func checkAligned(t *testing.T, name string, p process, ms []moment) {
	t.Helper()
	sums := map[[2]int64]int64{}
	for _, m := range ms {
		window := [2]int64{int64(m.key), (p.options.Start + m.at) / p.limit.Period.Microseconds()}
		if sums[window] += m.n; sums[window] > p.limit.Count {
			t.Fatalf("%s: %d in one window of %v", name, sums[window], p.limit)
		}
	}
}

// The log decides as a list of all that it ever admitted would, and says exactly when a request would pass.
func TestExactAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	denials := 0
	for range 300 {
		l := algorithm.Limit{Count: 1 + r.Int64N(12), Period: time.Duration(1+r.Int64N(50)) * time.Microsecond}
		log, err := Exact(l)
		if err != nil {
			t.Fatal(err)
		}
		var all []entry
		passes := func(at, n int64) bool {
			sum := n
			for _, e := range all {
				if e.at > at-l.Period.Microseconds() {
					sum += e.n
				}
			}
			return sum <= l.Count
		}
		now := int64(1_700_000_000_000_000)
		for range 200 {
			now += r.Int64N(1 + 2*l.Period.Microseconds()/l.Count)
			n := r.Int64N(l.Count + 2)
			_, after, d := log.Take(0, now, n)
			if want := passes(now, n); d.Allowed != (want || n == 0) {
				t.Fatalf("%v: %d at %d: %+v, by brute force %v", l, n, now, d, want)
			}
			switch wait := d.RetryAfter.Microseconds(); {
			case d.Allowed && n > 0:
				all = append(all, entry{now, n})
			case !d.Allowed && n > l.Count:
				if d.RetryAfter != algorithm.Never {
					t.Fatalf("%v: %d: %+v, want never", l, n, d)
				}
			case !d.Allowed:
				if denials++; wait < 1 || !passes(now+wait, n) || passes(now+wait-1, n) {
					t.Fatalf("%v: %d at %d: retry after %v is not exact", l, n, now, d.RetryAfter)
				}
			}
			if d.Remaining > 0 && !passes(now, d.Remaining) || passes(now, d.Remaining+1) {
				t.Fatalf("%v at %d: remaining %d is not exact", l, now, d.Remaining)
			}
			if after[0] != l.Count-d.Remaining || d.ResetAfter < 0 || (after[0] > 0) != (d.ResetAfter > 0) {
				t.Fatalf("%v at %d: state %v beside %+v", l, now, after, d)
			}
		}
	}
	if denials < 1000 {
		t.Errorf("%d denials: the test is too tame", denials)
	}
}
