package local_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

// rig is buckets under a clock and a share that a test sets.
type rig struct {
	*local.Buckets
	*storetest.Clock
	t     *testing.T
	share float64
}

func newRig(t *testing.T, share float64, maxKeys int) *rig {
	r := &rig{Clock: new(storetest.Clock), t: t, share: share}
	r.Buckets = local.NewBuckets(local.BucketsOptions{Clock: r.Now, MaxKeys: maxKeys, Share: func() float64 { return r.share }})
	return r
}

func (r *rig) ask(st sluice.Strategy, subject string, n int64, m sluice.Mode, at int64) sluice.Decision {
	r.t.Helper()
	d, err := r.Take(context.Background(), sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "api", Subject: subject}, N: n, Mode: m, At: at})
	if err != nil {
		r.t.Fatalf("%v of %d: %v", m, n, err)
	}
	return d
}

func (r *rig) charge(st sluice.Strategy, n int64) sluice.Decision {
	r.t.Helper()
	return r.ask(st, "a", n, sluice.Charge, 0)
}

func (r *rig) left(st sluice.Strategy) int64 {
	r.t.Helper()
	return r.ask(st, "a", 0, sluice.Peek, 0).Remaining
}

func tokens(count, burst int64, period time.Duration) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

// A process's bucket is its share of the limit; all of a fleet's add up to it, but for the floor of one unit.
func TestBucketsShare(t *testing.T) {
	window := func(l sluice.Limit) sluice.Strategy { return sluice.Must(fixedwindow.New(l)) }
	for _, c := range []struct {
		st          sluice.Strategy
		share       float64
		burst       int64
		perHundredS int64 // admitted in 100 s after the burst
	}{
		{tokens(100, 100, time.Second), 1, 100, 10_000},
		{tokens(100, 100, time.Second), 0.25, 25, 2_500},
		{tokens(100, 10, time.Second), 0.25, 2, 2_500},
		{tokens(3, 3, time.Second), 0.25, 1, 75}, // the floor: one at once, and the rate holds
		{tokens(1, 1, 10*time.Second), 0.25, 1, 2},
		{tokens(100, 100, time.Second), 1.0 / 3, 33, 3_333},
		{window(sluice.Limit{Count: 100, Period: time.Second}), 0.25, 25, 2_500},
		{window(sluice.Limit{Count: 100, Period: time.Second, Burst: 100}), 0.5, 50, 5_000},
		{tokens(100, 100, time.Second), 0, 1, 0}, {tokens(100, 100, time.Second), -1, 1, 0},
		{tokens(100, 100, time.Second), math.NaN(), 1, 0}, {tokens(100, 100, time.Second), math.Inf(1), 100, 10_000},
		{tokens(100, 100, time.Second), math.Inf(-1), 1, 0}, {tokens(100, 100, time.Second), 7, 100, 10_000},
	} {
		r := newRig(t, c.share, 0)
		admitted := int64(0)
		for {
			d := r.charge(c.st, 1)
			if d.Limit != c.burst || d.Remaining > d.Limit {
				t.Fatalf("%v, share %v: %+v, want Limit %d", c.st.Limit(), c.share, d, c.burst)
			}
			if !d.Allowed {
				break
			}
			admitted++
		}
		if admitted != c.burst {
			t.Errorf("%v, share %v: %d at once, want %d", c.st.Limit(), c.share, admitted, c.burst)
		}
		admitted = 0
		for range 100_000 {
			r.Advance(time.Millisecond)
			for r.charge(c.st, 1).Allowed {
				admitted++
			}
		}
		if admitted < c.perHundredS-1 || admitted > c.perHundredS {
			t.Errorf("%v, share %v: %d in 100 s, want %d", c.st.Limit(), c.share, admitted, c.perHundredS)
		}
	}
}

// RetryAfter is never 0 on a denial; the same request passes then, and a µs earlier it does not: but for waits of
// hours, which floating point rounds up by a few ns more, and rates at which a µs is many units.
func TestBucketsRetryAfter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	denied := 0
	for range 3000 {
		limit := sluice.Limit{
			Count:  1 + random.Int64N(1<<(1+random.IntN(20))),
			Period: time.Duration(1+random.Int64N(1<<(1+random.IntN(35)))) * time.Microsecond,
			Burst:  1 + random.Int64N(1<<(1+random.IntN(12))),
		}
		st, err := tokenbucket.New(limit)
		if err != nil || float64(limit.Burst)/float64(limit.Count)*limit.Period.Hours() > 1000 {
			continue // or the clock would reach its end
		}
		r := newRig(t, 1/float64(1+random.IntN(7)), 0)
		for range 20 {
			n := 1 + random.Int64N(limit.Burst)
			d := r.charge(st, n)
			if d.Allowed {
				continue
			}
			denied++
			if d.RetryAfter <= 0 || d.RetryAfter == sluice.Never {
				t.Fatalf("%v, share %v: %d of %d: RetryAfter %v", limit, r.share, n, d.Remaining, d.RetryAfter)
			}
			r.Advance(d.RetryAfter - time.Microsecond)
			early := r.ask(st, "a", n, sluice.Peek, 0)
			if early.Allowed && d.RetryAfter > time.Microsecond && d.RetryAfter < time.Hour && float64(r.share)*float64(limit.Count)/float64(limit.Period.Microseconds()) < 1e-3 {
				t.Fatalf("%v, share %v: %d pass a µs before RetryAfter %v", limit, r.share, n, d.RetryAfter)
			}
			r.Advance(time.Microsecond)
			if d := r.charge(st, n); !d.Allowed {
				t.Fatalf("%v, share %v: %d are denied still when RetryAfter is over: %+v", limit, r.share, n, d)
			}
			full := r.ask(st, "a", 0, sluice.Peek, 0).ResetAfter
			r.Advance(full)
			if d := r.ask(st, "a", 0, sluice.Peek, 0); d.Remaining != d.Limit || d.ResetAfter != 0 {
				t.Fatalf("%v, share %v: after ResetAfter %v: %+v, want it full", limit, r.share, full, d)
			}
			r.charge(st, limit.Burst)
		}
	}
	if denied < 1000 {
		t.Errorf("%d denials, want many", denied)
	}
}

// A clock that steps back credits nothing twice, and waits count its lag.
func TestBucketsClockStepsBack(t *testing.T) {
	r, st := newRig(t, 1, 0), tokens(10, 10, time.Second)
	r.charge(st, 10)
	r.Advance(time.Second)
	r.charge(st, 10)
	for range 10 {
		r.Advance(-time.Second)
		d := r.charge(st, 1)
		if d.Allowed || d.RetryAfter != 1100*time.Millisecond || d.ResetAfter != 2*time.Second {
			t.Fatalf("a second back: %+v, want denied for 1.1s, full in 2s", d)
		}
		r.Advance(time.Second)
	}
	if got := r.left(st); got != 0 {
		t.Errorf("%d left, want 0", got)
	}
}

// A cost above the bucket, but not above the limit, passes when the bucket is full, and is then paid off.
func TestBucketsDebt(t *testing.T) {
	r, st := newRig(t, 0.25, 0), tokens(100, 100, time.Second)
	r.charge(st, 1)
	d := r.charge(st, 60)
	if d.Allowed || d.RetryAfter != 40*time.Millisecond {
		t.Errorf("60 of 25, not full: %+v, want denied for 40ms", d)
	}
	admitted, start := int64(0), r.Now()
	for r.Now().Sub(start) < time.Minute {
		d := r.charge(st, 60)
		admitted += d.Charged
		if d.Allowed && (d.Remaining != 0 || d.ResetAfter != 2400*time.Millisecond) {
			t.Fatalf("60 of 25: %+v, want 0 left, full in 2.4s", d)
		}
		r.Advance(max(d.RetryAfter, time.Microsecond))
	}
	if most := int64(60 + 25*60); admitted > most || admitted < most-120 {
		t.Errorf("%d in a minute, want nearly %d", admitted, most)
	}
	if d := r.charge(st, 101); d.Allowed || d.RetryAfter != sluice.Never {
		t.Errorf("101 of 100: %+v, want Never", d)
	}
	if d := r.ask(st, "b", 100, sluice.Peek, 0); !d.Allowed || d.Charged != 0 {
		t.Errorf("a peek at 100 of a full bucket: %+v, want allowed", d)
	}
}

// When the share changes, the part that is spent stays spent; changing it to and fro gains nothing.
func TestBucketsShareChanges(t *testing.T) {
	r, st := newRig(t, 1, 0), tokens(100, 100, 24*time.Hour)
	r.charge(st, 40)
	for _, c := range []struct {
		share float64
		left  int64
	}{{0.5, 30}, {0.25, 15}, {1, 60}, {0.1, 6}, {0.5, 30}} {
		r.share = c.share
		if got := r.left(st); got != c.left {
			t.Errorf("share %v: %d left, want %d", c.share, got, c.left)
		}
	}
	admitted := int64(0)
	for i := range 1000 {
		r.share = []float64{0.25, 0.5, 1, 1.0 / 3}[i%4]
		admitted += r.charge(st, 1).Charged
	}
	if admitted > 60 {
		t.Errorf("%d admitted under a share that goes to and fro, want at most 60", admitted)
	}
	r.share = 0.5
	r.ask(st, "b", 100, sluice.Charge, 0) // full, and then 50 in debt
	r.share = 1
	if d := r.ask(st, "b", 0, sluice.Peek, 0); d.Remaining != 0 || d.ResetAfter != 48*time.Hour {
		t.Errorf("a debt of 50 under half: %+v, want one of 100 under the whole", d)
	}
}

// What a limit's edit leaves is what it leaves in Store: spent stays spent.
func TestBucketsEditedLimit(t *testing.T) {
	r := newRig(t, 1, 0)
	r.charge(tokens(10, 10, 24*time.Hour), 4)
	for _, c := range []struct{ burst, left int64 }{{20, 16}, {10, 6}, {100, 96}} {
		if got := r.left(tokens(10, c.burst, 24*time.Hour)); got != c.left {
			t.Errorf("burst %d: %d left, want %d", c.burst, got, c.left)
		}
	}
}

// Leaky answers with a Delay of the local rate; the others don't.
func TestBucketsLeaky(t *testing.T) {
	l := sluice.Limit{Count: 100, Period: time.Second, Burst: 40}
	r, queue := newRig(t, 0.25, 0), sluice.Must(leaky.New(l))
	for i, want := range []time.Duration{0, 40, 80, 120} {
		if d := r.charge(queue, 1); d.Delay != want*time.Millisecond || !d.Allowed {
			t.Errorf("unit %d: %+v, want a delay of %dms", i, d, want)
		}
	}
	if d := r.ask(queue, "a", 1, sluice.Peek, 0); d.Delay != 0 {
		t.Errorf("a peek: %+v, want no delay", d)
	}
	for _, st := range []sluice.Strategy{sluice.Must(tokenbucket.New(l)), sluice.Must(slidingwindow.New(sluice.Limit{Count: 40, Period: time.Second}))} {
		for range 5 {
			if d := r.charge(st, 1); d.Delay != 0 {
				t.Errorf("%T: %+v, want no delay", st, d)
			}
		}
	}
	one := sluice.Must(leaky.New(sluice.Limit{Count: 100, Period: time.Second, Burst: 1}))
	if d := r.ask(one, "b", 1, sluice.Charge, 0); d.Delay != 0 || d.Limit != 1 {
		t.Errorf("a queue of one: %+v", d)
	}
}

// Giving back never widens the limit: at most what was spent, and nothing of a window that has ended.
func TestBucketsSettle(t *testing.T) {
	r, st := newRig(t, 0.5, 0), tokens(100, 100, 24*time.Hour)
	d := r.charge(st, 10)
	for _, n := range []int64{-5, -1000, math.MinInt64} {
		r.ask(st, "a", n, sluice.Settle, d.At)
	}
	if d := r.charge(st, 0); d.Remaining != 50 || d.ResetAfter != 0 {
		t.Errorf("more given back than spent: %+v, want 50 left", d)
	}
	r.ask(st, "a", math.MaxInt64, sluice.Settle, d.At)
	if d := r.charge(st, 1); d.Allowed || d.ResetAfter != 72*time.Hour {
		t.Errorf("all owed: %+v, want a whole burst of debt beyond the bucket: full in 72h", d)
	}
}

func TestBucketsEndedWindow(t *testing.T) {
	r, st := newRig(t, 1, 0), sluice.Must(fixedwindow.New(sluice.Limit{Count: 60, Period: time.Minute}))
	r.Advance(50 * time.Second)
	d := r.charge(st, 60)
	r.ask(st, "a", -10, sluice.Settle, d.At)
	if got := r.left(st); got != 10 {
		t.Errorf("in the window: %d left, want 10", got)
	}
	r.Advance(20 * time.Second)
	r.ask(st, "a", -10, sluice.Settle, d.At)
	if got := r.left(st); got != 30 {
		t.Errorf("after it: %d left, want 30: what was regained", got)
	}
}

// A refused batch leaves every bucket as it was, also where a key occurs twice and modes are mixed.
func TestBucketsTakeAllRefused(t *testing.T) {
	r, st := newRig(t, 0.5, 0), tokens(100, 100, 24*time.Hour)
	at := func(subject string, n int64, m sluice.Mode) sluice.Ask {
		return sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "api", Subject: subject}, N: n, Mode: m}
	}
	r.charge(st, 10)
	before := r.Len()
	v, err := r.TakeAll(context.Background(), []sluice.Ask{
		at("a", 5, sluice.Charge), at("b", 99, sluice.UpTo), at("a", -7, sluice.Settle), at("c", 9, sluice.Settle),
		at("a", 39, sluice.Charge), at("c", 1, sluice.Charge), at("d", 1, sluice.Charge), at("a", 4, sluice.Charge), at("e", 1, sluice.Charge),
	})
	if err != nil || v.Allowed || v.Refused != 7 || v.Charged != 0 || v.Source != sluice.Local {
		t.Errorf("%+v, %v; want refused by ask 7", v, err)
	}
	for i, d := range v.Each {
		if d.Limit != 50 {
			t.Errorf("ask %d: Limit %d, want 50", i, d.Limit)
		}
	}
	for subject, want := range map[string]int64{"a": 40, "b": 50, "c": 50, "d": 50, "e": 50} {
		if got := r.ask(st, subject, 0, sluice.Peek, 0).Remaining; got != want {
			t.Errorf("%s has %d left, want %d", subject, got, want)
		}
	}
	if got := r.Len(); got != before {
		t.Errorf("%d buckets, want %d as before", got, before)
	}
}

// At the cap a drained key stays drained, and new subjects share one bucket.
func TestCase_K1_BucketsEviction(t *testing.T) {
	r, st := newRig(t, 1, 1000), tokens(10, 10, time.Hour)
	if d := r.ask(st, "victim", 10, sluice.Charge, 0); !d.Allowed {
		t.Fatal(d)
	}
	admitted := int64(0)
	for i := range 10_000 {
		admitted += r.ask(st, fmt.Sprint(i), 10, sluice.UpTo, 0).Charged
	}
	if d := r.ask(st, "victim", 1, sluice.Charge, 0); d.Allowed {
		t.Errorf("the victim was handed a fresh burst: %+v", d)
	}
	if admitted != 999*10+10 {
		t.Errorf("%d admitted, want 999 bursts and a shared one", admitted)
	}
	if r.Len() != 1001 || r.Overflows() != 9001 {
		t.Errorf("Len %d, Overflows %d; want 1001, 9001", r.Len(), r.Overflows())
	}
	r.ask(st, "9999", 0, sluice.Reset, 0)
	if d := r.ask(st, "9998", 1, sluice.Charge, 0); d.Allowed {
		t.Errorf("one subject's reset freed the others: %+v", d)
	}
	v, err := r.TakeAll(context.Background(), []sluice.Ask{
		{Strategy: st, Key: sluice.Key{Rule: "api", Subject: "new"}, N: 1}, {Strategy: st, Key: sluice.Key{Rule: "api", Subject: "newer"}, N: 1},
	})
	if err != nil || v.Allowed || v.Refused != 0 {
		t.Errorf("a batch of new subjects: %+v, %v; want refused by the shared bucket", v, err)
	}
	r.Advance(30 * time.Minute)
	r.ask(st, "victim", 0, sluice.Reset, 0) // makes room for one
	if d := r.ask(st, "9998", 10, sluice.UpTo, 0); d.Charged > 5 {
		t.Errorf("a subject that finds room has %d, want at most what the shared bucket has: 5", d.Charged)
	}
}

// Memory falls whatever the traffic is.
func TestCase_K3_BucketsSweep(t *testing.T) {
	r, st := newRig(t, 1, 0), tokens(10, 10, time.Second)
	drained := tokens(1, 1, 24*time.Hour)
	r.ask(drained, "busy", 1, sluice.Charge, 0)
	for i := range 100_000 {
		r.ask(st, fmt.Sprint(i), 1, sluice.Charge, 0)
	}
	for range 200 {
		r.Advance(100 * time.Millisecond)
		if d := r.ask(drained, "busy", 1, sluice.Charge, 0); d.Allowed {
			t.Fatal("the drained key passes")
		}
	}
	if got := r.Len(); got > 2 {
		t.Errorf("%d buckets after two sweep periods of denials, want at most 2", got)
	}
}

// odd is a strategy whose limit is none.
type odd struct {
	sluice.Strategy
	limit sluice.Limit
}

func (o odd) Limit() sluice.Limit { return o.limit }

// A limit that is none is an error: x/time/rate would let everything pass.
func TestBucketsOddLimits(t *testing.T) {
	r := newRig(t, 1, 0)
	for _, l := range []sluice.Limit{{}, {Count: -1, Period: time.Second}, {Count: 1}, {Count: 1, Period: -1}, {Count: algorithm.Bound, Period: 1}} {
		st := odd{tokens(1, 1, time.Second), l}
		for _, m := range []sluice.Mode{sluice.Charge, sluice.Peek, sluice.UpTo, sluice.Settle, sluice.Reset} {
			a := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "api", Subject: "a"}, N: 1, Mode: m}
			if d, err := r.Take(context.Background(), a); err == nil || d.Allowed {
				t.Errorf("%+v, %v: %+v, %v; want an error", l, m, d, err)
			}
			if m == sluice.Reset {
				continue
			}
			if v, err := r.TakeAll(context.Background(), []sluice.Ask{{Strategy: tokens(1, 1, time.Second), Key: sluice.Key{Subject: "b"}, N: 1}, a}); err == nil || v.Allowed {
				t.Errorf("%+v, %v: %+v, %v; want an error", l, m, v, err)
			}
		}
	}
	if r.Len() != 0 {
		t.Errorf("%d buckets, want none", r.Len())
	}
	if d := r.ask(tokens(1, 1, time.Second), "b", 1, sluice.Charge, 0); !d.Allowed {
		t.Errorf("a batch with an error charged: %+v", d)
	}
}

// The largest and smallest limits keep their numbers.
func TestBucketsExtremes(t *testing.T) {
	for _, l := range []sluice.Limit{
		{Count: 1, Period: 365 * 24 * time.Hour, Burst: 1}, {Count: 1_000_000_000, Period: time.Second, Burst: 1_000_000_000},
		{Count: 65_535, Period: time.Second, Burst: 65_535}, {Count: 1, Period: time.Microsecond, Burst: 1},
	} {
		r, st := newRig(t, 0.25, 0), sluice.Must(tokenbucket.New(l))
		d := r.charge(st, l.Burst)
		if !d.Allowed || d.ResetAfter <= 0 {
			t.Errorf("%v: %+v", l, d)
		}
		d = r.charge(st, l.Burst)
		if d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 1500*24*time.Hour {
			t.Errorf("%v: %+v, want denied for a while", l, d)
		}
		r.Advance(d.RetryAfter)
		if d := r.charge(st, l.Burst); !d.Allowed {
			t.Errorf("%v: %+v", l, d)
		}
	}
}

func TestBucketsAllocate(t *testing.T) {
	s := local.NewBuckets(local.BucketsOptions{Share: func() float64 { return 0.5 }})
	a := sluice.Ask{Strategy: tokens(1<<30, 1<<30, time.Second), Key: sluice.Key{Rule: "api", Subject: "a"}, N: 1}
	drained := sluice.Ask{Strategy: tokens(1, 1, 24*time.Hour), Key: sluice.Key{Rule: "slow", Subject: "a"}, N: 1}
	for _, a := range []sluice.Ask{a, drained, {Strategy: a.Strategy, Key: a.Key, N: 1, Mode: sluice.Peek}} {
		if got := testing.AllocsPerRun(1000, func() { _, _ = s.Take(context.Background(), a) }); got != 0 {
			t.Errorf("%v of %v allocates %v times, want none", a.Mode, a.Strategy.Limit(), got)
		}
	}
}
