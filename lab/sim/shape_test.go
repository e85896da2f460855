package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func times(s Shape, n int) (at []int64) {
	next := s.start(rand.New(rand.NewPCG(3, 4)))
	for range n {
		at = append(at, next())
	}
	return at
}

func TestShapeTimes(t *testing.T) {
	const s, ms = 1_000_000, 1_000
	for _, c := range []struct {
		shape Shape
		want  []int64
	}{
		{Constant{4}, []int64{0, 250 * ms, 500 * ms, 750 * ms, 1 * s}},
		{Constant{3}, []int64{0, 333333, 666666, 1 * s, 1333333}},
		{Bursts{2, time.Second}, []int64{0, 0, 1 * s, 1 * s, 2 * s}},
		{OnOff{4, 500 * time.Millisecond, time.Second}, []int64{0, 250 * ms, 1500 * ms, 1750 * ms, 3 * s}},
		{Boundary{1, time.Minute, time.Second}, []int64{59 * s, 60 * s, 61 * s, 119 * s, 120 * s}},
	} {
		if got := times(c.shape, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%T %+v: %v, want %v", c.shape, c.shape, got, c.want)
		}
	}
}

// Random shapes have the rate that they say, in order of time.
func TestRandomShapes(t *testing.T) {
	const n = 100_000
	for _, shape := range []Shape{Poisson{50}, Diurnal{50, 2, 200 * time.Second}} {
		at := times(shape, n)
		if !slices.IsSorted(at) {
			t.Errorf("%T: not in order", shape)
		}
		end := float64(at[n-1]) / 1e6
		want := 50 * end
		if _, ok := shape.(Diurnal); ok {
			want -= 50 * 200 / (2 * math.Pi) * math.Sin(2*math.Pi*end/200)
		}
		if math.Abs(n-want) > 6*math.Sqrt(want) {
			t.Errorf("%T: %d in %.0f s, want about %.0f", shape, n, end, want)
		}
	}
	low, high := 0, 0
	for _, at := range times(Diurnal{50, 2, 200 * time.Second}, n) {
		switch at / 1_000_000 % 200 / 10 {
		case 0, 19:
			low++
		case 9, 10:
			high++
		}
	}
	if low*20 > high || high == 0 {
		t.Errorf("%d in the lowest tenth of the day, %d in the highest", low, high)
	}
	// The gaps of Poisson vary as much as they are long.
	at := times(Poisson{50}, n)
	sum, squares := 0.0, 0.0
	for i := 1; i < n; i++ {
		gap := float64(at[i] - at[i-1])
		sum, squares = sum+gap, squares+gap*gap
	}
	mean := sum / (n - 1)
	if deviation := math.Sqrt(squares/(n-1) - mean*mean); math.Abs(deviation/mean-1) > 0.02 {
		t.Errorf("deviation %v of mean %v, want the same", deviation, mean)
	}
}

func TestTrafficSubjectsAndCosts(t *testing.T) {
	const n = 60_000
	count := func(traffic Traffic) (subjects map[int]int, costs map[int64]int) {
		subjects, costs = map[int]int{}, map[int64]int{}
		next := traffic.Start(9)
		for range n {
			r, _ := next()
			subjects[r.Subject]++
			costs[r.N]++
		}
		return subjects, costs
	}
	near := func(what string, got int, part float64) {
		if want := part * n; math.Abs(float64(got)-want) > 6*math.Sqrt(want) {
			t.Errorf("%s: %d, want about %.0f", what, got, want)
		}
	}
	subjects, costs := count(Traffic{Shape: Constant{1}, Subjects: 3, Skew: 1, Cost: 2, MostCost: 5})
	for k, part := range []float64{6. / 11, 3. / 11, 2. / 11} {
		near("subject", subjects[k], part)
	}
	for n := int64(2); n <= 5; n++ {
		near("cost", costs[n], 0.25)
	}
	if len(subjects) != 3 || len(costs) != 4 {
		t.Errorf("%v, %v", subjects, costs)
	}
	subjects, costs = count(Traffic{Shape: Constant{1}, Subjects: 2})
	near("subject", subjects[0], 0.5)
	if len(subjects) != 2 || costs[1] != n {
		t.Errorf("%v, %v", subjects, costs)
	}
}

// Waiters come back in order of time, those of one time in the order in which they were denied.
func TestWaiters(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	var h waiters
	var last waiter
	push := func(from int64) { h.push(waiter{Request: Request{At: from + r.Int64N(20)}}) }
	for range 500 {
		push(0)
	}
	for i := 0; len(h.heap) > 0; i++ {
		w := h.pop()
		if w.At < last.At || w.At == last.At && w.order <= last.order {
			t.Fatalf("%+v after %+v", w, last)
		}
		if last = w; i < 1000 && i%3 > 0 {
			push(w.At)
		}
	}
}

// A backoff is at most 30 s, or the pause where that is longer, and at least 1 µs.
func TestBackoffBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for _, pause := range []time.Duration{time.Microsecond, 100 * time.Millisecond, time.Hour, math.MaxInt64} {
		c := Clients{Manners: Backoff, Pause: pause, Tries: mostTries}
		for try := 1; try < mostTries; try++ {
			wait, again := c.wait(try, denial(), r)
			if most := max(pause, mostBackoff).Microseconds(); !again || wait < 1 || wait > most {
				t.Fatalf("pause %v, try %d: %d µs, %v", pause, try, wait, again)
			}
			if try == 1 && wait > pause.Microseconds() {
				t.Fatalf("first wait %d µs of %v", wait, pause)
			}
		}
		if _, again := c.wait(mostTries, denial(), r); again {
			t.Error("no end of tries")
		}
	}
}

func TestHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var h histogram
	if h.mean() != 0 || h.quantile(0.5) != 0 {
		t.Error("an empty histogram has times")
	}
	var all []int64
	sum := 0.0
	for range 10_000 {
		x := int64(math.Exp(r.Float64() * 33)) // up to 6 years
		if r.IntN(3) == 0 {
			x = r.Int64N(300)
		}
		h.add(x)
		all = append(all, x)
		sum += float64(x)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 1} {
		exact := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		if got := h.quantile(q).Microseconds(); q > 0 && (got < exact || float64(got) > 1.01*float64(exact)) {
			t.Errorf("quantile %v: %d, want %d to 1 %% above", q, got, exact)
		}
	}
	for x := range int64(100_000) {
		if p := part(x); upper(p) < x || p > 0 && upper(p-1) >= x {
			t.Fatalf("%d is in part %d, up to %d", x, p, upper(p))
		}
	}
}
