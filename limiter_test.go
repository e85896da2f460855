package sluice_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/store/local"
)

// What a Limiter's methods ask of the store.
func TestLimiterAsks(t *testing.T) {
	st, ctx := bucket(1, time.Second, 10), t.Context()
	s := newSpy(noon)
	l := sluice.New(s, st, "rule")
	key := sluice.Key{Rule: "rule", Subject: "ann"}
	d, err := l.AllowN(ctx, "ann", 3)
	if err != nil || d.Charged != 3 || d.Remaining != 7 || d.Limit != 10 {
		t.Fatalf("AllowN: %+v, %v", d, err)
	}
	for _, c := range []struct {
		name string
		call func() error
		want []sluice.Ask
	}{
		{"AllowN", func() error { return nil }, []sluice.Ask{{Strategy: st, Key: key, N: 3}}},
		{"Allow", func() error { _, err := l.Allow(ctx, "ann"); return err }, []sluice.Ask{{Strategy: st, Key: key, N: 1}}},
		{"Peek", func() error { _, err := l.Peek(ctx, "ann", 5); return err }, []sluice.Ask{{Strategy: st, Key: key, N: 5, Mode: sluice.Peek}}},
		{"Refund", func() error { return l.Refund(ctx, "ann", d) }, []sluice.Ask{{Strategy: st, Key: key, N: -3, Mode: sluice.Settle, At: d.At}}},
		{"Refund of a denial", func() error { return l.Refund(ctx, "ann", sluice.Decision{}) }, nil},
		{"Reset", func() error { return l.Reset(ctx, "ann") }, []sluice.Ask{{Strategy: st, Key: key, Mode: sluice.Reset}}},
		{"Wait", func() error { return l.Wait(ctx, "ann", 2) }, []sluice.Ask{{Strategy: st, Key: key, N: 2}}},
	} {
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got := s.seen()
		if len(got) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
			t.Errorf("%s asks %+v, want %+v", c.name, got, c.want)
		}
	}
	if a := l.Ask("ann", 4); a != (sluice.Ask{Strategy: st, Key: key, N: 4}) {
		t.Errorf("Ask is %+v", a)
	}
	other := bucket(1, time.Second, 20)
	if a := l.With(other).Ask("ann", 4); a != (sluice.Ask{Strategy: other, Key: key, N: 4}) {
		t.Errorf("With(other).Ask is %+v", a)
	}
	if a := l.Ask("ann", 4); a.Strategy != st {
		t.Error("With changed the limiter itself")
	}
}

func TestLimiterErrors(t *testing.T) {
	s := newSpy(noon)
	s.breaks(errBoom)
	l, ctx := sluice.New(s, bucket(1, time.Second, 10), "rule"), t.Context()
	for name, call := range map[string]func() error{
		"Allow":  func() error { _, err := l.Allow(ctx, "a"); return err },
		"AllowN": func() error { _, err := l.AllowN(ctx, "a", 2); return err },
		"Peek":   func() error { _, err := l.Peek(ctx, "a", 2); return err },
		"Wait":   func() error { return l.Wait(ctx, "a", 2) },
		"Refund": func() error { return l.Refund(ctx, "a", sluice.Decision{Charged: 1}) },
		"Reset":  func() error { return l.Reset(ctx, "a") },
		"Reserve": func() error {
			r, err := l.Reserve(ctx, "a", 2)
			if r != nil {
				t.Error("Reserve returns a reservation with its error")
			}
			return err
		},
	} {
		if err := call(); err != errBoom {
			t.Errorf("%s: the store's error became %v", name, err)
		}
	}
}

func TestLimiterCost(t *testing.T) {
	l, ctx := sluice.New(local.New(local.Options{Clock: noon}), bucket(1, time.Second, 10), "rule"), t.Context()
	for _, n := range []int64{-1, math.MinInt64} {
		d, err := l.AllowN(ctx, "a", n)
		_, peek := l.Peek(ctx, "a", n)
		_, reserve := l.Reserve(ctx, "a", n)
		for _, err := range []error{err, peek, reserve} {
			if !errors.Is(err, sluice.ErrCost) || d.Allowed {
				t.Errorf("n %d: %v, Allowed %v; want ErrCost", n, err, d.Allowed)
			}
		}
	}
	left(t, l, "a", 10)
}

func TestMode(t *testing.T) {
	for m, want := range map[sluice.Mode]string{
		sluice.Charge: "charge", sluice.Peek: "peek", sluice.UpTo: "upto", sluice.Settle: "settle", sluice.Reset: "reset",
		5: "mode(5)", 255: "mode(255)",
	} {
		if got := m.String(); got != want {
			t.Errorf("Mode(%d) is %q, want %q", uint8(m), got, want)
		}
	}
	var a sluice.Ask
	if a.Mode != sluice.Charge {
		t.Error("the zero Mode is not Charge")
	}
}

func TestAskCheck(t *testing.T) {
	st := bucket(1, time.Second, 10)
	for _, c := range []struct {
		ask  sluice.Ask
		want string // "" for none
		cost bool
	}{
		{sluice.Ask{Strategy: st}, "", false},
		{sluice.Ask{Strategy: st, N: math.MaxInt64, Mode: sluice.UpTo}, "", false},
		{sluice.Ask{Strategy: st, N: -1, Mode: sluice.Settle}, "", false},
		{sluice.Ask{Strategy: st, N: math.MinInt64, Mode: sluice.Settle}, "", false},
		{sluice.Ask{Strategy: st, Mode: sluice.Reset}, "", false},
		{sluice.Ask{}, "Strategy is nil", false},
		{sluice.Ask{N: -1}, "Strategy is nil", false},
		{sluice.Ask{Strategy: st, Mode: 5}, "Mode 5: want at most 4", false},
		{sluice.Ask{Strategy: st, N: -1}, "N is -1, want at least 0", true},
		{sluice.Ask{Strategy: st, N: math.MinInt64, Mode: sluice.Peek}, "N is -9223372036854775808", true},
		{sluice.Ask{Strategy: st, N: -1, Mode: sluice.UpTo}, "N is -1", true},
		{sluice.Ask{Strategy: st, N: -1, Mode: sluice.Reset}, "N is -1", true},
	} {
		err := c.ask.Check()
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.ask, err, c.want)
		case errors.Is(err, sluice.ErrCost) != c.cost:
			t.Errorf("%+v: %v: ErrCost %v, want %v", c.ask, err, !c.cost, c.cost)
		}
	}
}

// Decide runs a mode on a state: what it leaves there and what it says.
func TestAskDecide(t *testing.T) {
	const now = 1_700_000_000_000_000
	st := bucket(1, time.Second, 10)
	six, _ := st.Take(algorithm.State{}, now, 6)
	for _, c := range []struct {
		mode            sluice.Mode
		n               int64
		kept            int64 // Remaining of the state that is left
		charged, remain int64
		allowed         bool
		retry           time.Duration
	}{
		{sluice.Charge, 3, 1, 3, 1, true, 0},
		{sluice.Charge, 5, 4, 0, 4, false, time.Second},
		{sluice.Charge, 0, 4, 0, 4, true, 0},
		{sluice.Peek, 3, 4, 0, 4, true, 0},
		{sluice.Peek, 5, 4, 0, 4, false, time.Second},
		{sluice.Peek, 11, 4, 0, 4, false, sluice.Never},
		{sluice.UpTo, 3, 1, 3, 1, true, 0},
		{sluice.UpTo, 9, 0, 4, 0, true, 0},
		{sluice.UpTo, 99, 0, 4, 0, true, 0},
		{sluice.Settle, -2, 6, 0, 6, true, 0},
		{sluice.Settle, -99, 10, 0, 10, true, 0},
		{sluice.Settle, 3, 1, 0, 1, true, 0},
		{sluice.Settle, 99, 0, 0, 0, true, 0},
		{sluice.Reset, 0, 10, 0, 10, true, 0},
	} {
		a := sluice.Ask{Strategy: st, N: c.n, Mode: c.mode, At: now}
		kept, d := a.Decide(six, now)
		if d.Allowed != c.allowed || d.Charged != c.charged || d.Remaining != c.remain || d.RetryAfter != c.retry || d.Limit != 10 || d.At != now {
			t.Errorf("%v %d of 4: %+v; want %+v", c.mode, c.n, d, c)
		}
		_, after := st.Take(kept, now, 0)
		if after.Remaining != c.kept || d.ResetAfter != after.ResetAfter {
			t.Errorf("%v %d of 4: keeps %d, ResetAfter %v, said %v; want %d", c.mode, c.n, after.Remaining, after.ResetAfter, d.ResetAfter, c.kept)
		}
		if wrote := kept != six; wrote != (c.kept != 4) {
			t.Errorf("%v %d of 4: the state becomes %v from %v", c.mode, c.n, kept, six)
		}
	}
	full, _ := st.Take(algorithm.State{}, now, 10)
	none := sluice.Ask{Strategy: st, N: 3, Mode: sluice.UpTo}
	if kept, d := none.Decide(full, now); d.Allowed || d.Charged != 0 || d.RetryAfter != 3*time.Second || kept != full {
		t.Errorf("upto 3 of 0: %+v", d)
	}
}

// A subject may hold anything: its key is two fields, not one joined string.
func TestKey(t *testing.T) {
	store, st := local.New(local.Options{Clock: noon}), bucket(1, time.Hour, 1)
	for _, k := range []sluice.Key{
		{"a", "b:c"}, {"a:b", "c"}, {"", "a:b:c"}, {"a:b:c", ""}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {"", ""},
		{"a", "b\x00"}, {"a\x00", "b"}, {"a", "{b}"}, {"a", "%62"}, {"a", "b\n"},
	} {
		if d, err := sluice.New(store, st, k.Rule).Allow(t.Context(), k.Subject); err != nil || !d.Allowed {
			t.Errorf("%q: %+v, %v: want a state of its own", k, d, err)
		}
	}
}

func TestReserve(t *testing.T) {
	for _, c := range []struct {
		name             string
		estimate, actual int64
		remaining        int64
		retry            time.Duration // of one unit, of 1 a second
		asks             int           // beyond Reserve's own
		spentBefore      int64
	}{
		{name: "less is given back", estimate: 6, actual: 2, remaining: 8, asks: 1},
		{name: "nothing was used", estimate: 6, actual: 0, remaining: 10, asks: 1},
		{name: "as estimated", estimate: 6, actual: 6, remaining: 4, asks: 0},
		{name: "more is owed", estimate: 6, actual: 9, remaining: 1, asks: 1},
		{name: "more than fits is owed", estimate: 6, actual: 13, remaining: 0, retry: 4 * time.Second, asks: 1},
		{name: "one burst at most is owed", estimate: 6, actual: 1 << 60, remaining: 0, retry: 11 * time.Second, asks: 1},
		{name: "an estimate of nothing", estimate: 0, actual: 3, remaining: 7, asks: 1},
		{name: "refused", spentBefore: 8, estimate: 3, actual: 1, remaining: 2, asks: 0},
		{name: "refused for ever", estimate: 11, actual: 1, remaining: 10, asks: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpy(noon)
			l, ctx := sluice.New(s, bucket(1, time.Second, 10), "rule"), t.Context()
			if _, err := l.AllowN(ctx, "a", c.spentBefore); err != nil {
				t.Fatal(err)
			}
			r, err := l.Reserve(ctx, "a", c.estimate)
			if err != nil {
				t.Fatal(err)
			}
			fits := c.estimate <= 10-c.spentBefore
			if d := r.Decision(); d.Allowed != fits || fits && d.Charged != c.estimate || !fits && d.RetryAfter == 0 {
				t.Errorf("Decision is %+v", d)
			}
			s.seen()
			check := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				n := len(s.seen())
				if what == "Settle" && n != c.asks || what != "Settle" && n != 0 {
					t.Errorf("%s asks the store %d times", what, n)
				}
				if d, err := l.Peek(ctx, "a", 1); err != nil || d.Remaining != c.remaining || d.RetryAfter != c.retry {
					t.Errorf("after %s: %+v, %v; want Remaining %d, RetryAfter %v", what, d, err, c.remaining, c.retry)
				}
				s.seen()
			}
			check("Settle", r.Settle(ctx, c.actual))
			check("a second Settle", r.Settle(ctx, 1))
			check("Cancel", r.Cancel(ctx))
		})
	}
}

func TestReserveCancel(t *testing.T) {
	s := newSpy(noon)
	l, ctx := sluice.New(s, bucket(1, time.Second, 10), "rule"), t.Context()
	r, err := l.Reserve(ctx, "a", 6)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.Cancel(ctx); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		left(t, l, "a", 10)
	}
	if err := r.Settle(ctx, 6); err != nil {
		t.Errorf("Settle after Cancel: %v", err)
	}
	left(t, l, "a", 10)
}

func TestReserveSettleCost(t *testing.T) {
	l, ctx := sluice.New(newSpy(noon), bucket(1, time.Second, 10), "rule"), t.Context()
	r, err := l.Reserve(ctx, "a", 6)
	if err != nil {
		t.Fatal(err)
	}
	for _, actual := range []int64{-1, math.MinInt64} {
		if err := r.Settle(ctx, actual); !errors.Is(err, sluice.ErrCost) {
			t.Errorf("Settle(%d): %v, want ErrCost", actual, err)
		}
	}
	left(t, l, "a", 4)
	if err := r.Settle(ctx, 1); err != nil { // it still can be settled
		t.Error(err)
	}
	left(t, l, "a", 9)
}

// Refunds are made when requests have ended, and so have their contexts.
func TestGivingBackOutlivesTheContext(t *testing.T) {
	l := sluice.New(newSpy(noon), bucket(1, time.Second, 10), "rule")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for name, ctx := range map[string]context.Context{"cancelled": cancelled, "late": late} {
		for what, giveBack := range map[string]func(*sluice.Reservation) error{
			"Settle": func(r *sluice.Reservation) error { return r.Settle(ctx, 0) },
			"Cancel": func(r *sluice.Reservation) error { return r.Cancel(ctx) },
			"Refund": func(r *sluice.Reservation) error { return l.Refund(ctx, "a", r.Decision()) },
		} {
			r, err := l.Reserve(t.Context(), "a", 6)
			if err != nil {
				t.Fatal(err)
			}
			if err := giveBack(r); err != nil {
				t.Errorf("%s with a context that is %s: %v", what, name, err)
			}
			left(t, l, "a", 10)
		}
	}
}

// A store that failed may have settled nevertheless, so that it is not asked again.
func TestReserveSettlesOnceWhereTheStoreFails(t *testing.T) {
	s := newSpy(noon)
	l, ctx := sluice.New(s, bucket(1, time.Second, 10), "rule"), t.Context()
	r, err := l.Reserve(ctx, "a", 6)
	if err != nil {
		t.Fatal(err)
	}
	s.seen()
	s.breaks(errBoom)
	for range 2 {
		if err := r.Settle(ctx, 2); err != errBoom {
			t.Errorf("Settle: %v, want the store's error", err)
		}
	}
	if err := r.Cancel(ctx); err != nil {
		t.Errorf("Cancel after Settle: %v", err)
	}
	if n := len(s.seen()); n != 1 {
		t.Errorf("the store was asked %d times, want once", n)
	}
}

func TestReserveConcurrentSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(nil)
		s.slow = time.Millisecond
		l := sluice.New(s, bucket(1, time.Hour, 100), "rule")
		r, err := l.Reserve(t.Context(), "a", 50)
		if err != nil {
			t.Fatal(err)
		}
		s.seen()
		var done sync.WaitGroup
		for i := range 64 {
			done.Go(func() {
				err := r.Settle(t.Context(), 20)
				if i%2 == 0 {
					err = r.Cancel(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if asks := s.seen(); len(asks) != 1 || asks[0].Mode != sluice.Settle || asks[0].N != -30 {
			t.Errorf("64 callers settle: asks %+v, want one of -30", asks)
		}
		left(t, l, "a", 80)
	})
}

// A reservation of a window that has ended gives nothing back, and owes in the running one.
func TestReserveInAnEndedWindow(t *testing.T) {
	now := noon()
	clock := func() time.Time { return now }
	for actual, want := range map[int64]int64{0: 7, 8: 5} {
		l, ctx := sluice.New(newSpy(clock), fixed(10, time.Minute), "rule"), t.Context()
		r, err := l.Reserve(ctx, "a", 6)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
		if _, err := l.AllowN(ctx, "a", 3); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(ctx, actual); err != nil {
			t.Error(err)
		}
		left(t, l, "a", want)
	}
}

// sighting is what an observer was told.
type sighting struct {
	ask  sluice.Ask
	d    sluice.Decision
	err  error
	took time.Duration
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "the caller's")
		s := newSpy(nil)
		s.slow = 7 * time.Millisecond
		var seen []sighting
		o := sluice.Observe(s, sluice.ObserverFunc(func(got context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
			if got.Value(key{}) != ctx.Value(key{}) {
				t.Error("the observer gets another context")
			}
			seen = append(seen, sighting{a, d, err, took})
		}))
		if _, ok := o.(sluice.Batcher); !ok {
			t.Fatal("an observed store is no Batcher")
		}
		l := sluice.New(o, bucket(1, time.Hour, 5), "rule")
		d, err := l.AllowN(ctx, "a", 2)
		want := sighting{l.Ask("a", 2), d, nil, s.slow}
		if err != nil || !d.Allowed || len(seen) != 1 || seen[0] != want {
			t.Errorf("Take: told %+v, want %+v", seen, want)
		}

		seen = nil
		asks := []sluice.Ask{l.Ask("a", 1), l.Ask("b", 5), l.Ask("a", 1)}
		v, err := sluice.TakeAll(ctx, o, asks)
		if err != nil || !v.Allowed || len(seen) != 3 {
			t.Fatalf("TakeAll: %+v, %v, told of %d asks", v, err, len(seen))
		}
		for i, a := range asks {
			if want := (sighting{a, v.Each[i], nil, 3 * s.slow}); seen[i] != want {
				t.Errorf("TakeAll, ask %d: told %+v, want %+v", i, seen[i], want)
			}
		}

		seen = nil
		v, err = sluice.TakeAll(ctx, o, []sluice.Ask{l.Ask("a", 1), l.Ask("b", 1), l.Ask("c", 1)})
		if err != nil || v.Refused != 1 || len(seen) != 3 {
			t.Fatalf("TakeAll: %+v, %v, told of %d asks", v, err, len(seen))
		}
		for i := range seen {
			if seen[i].d != v.Each[i] || seen[i].d.Allowed {
				t.Errorf("refused TakeAll, ask %d: told %+v, want %+v", i, seen[i].d, v.Each[i])
			}
		}

		seen = nil
		s.breaks(errBoom)
		_, one := l.Allow(ctx, "a")
		_, all := sluice.TakeAll(ctx, o, asks[:2])
		if one != errBoom || all != errBoom || len(seen) != 3 {
			t.Fatalf("a store that fails: %v, %v, told of %d asks", one, all, len(seen))
		}
		for i, sight := range seen {
			if sight.err != errBoom || sight.d != (sluice.Decision{}) {
				t.Errorf("a store that fails, sight %d: %+v", i, sight)
			}
		}
	})
}

// batcher is a store that tells how its TakeAll was called.
type batcher struct {
	sluice.Store
	calls *int
}

func (b batcher) TakeAll(context.Context, []sluice.Ask) (sluice.Verdict, error) {
	*b.calls++
	return sluice.Verdict{Refused: -1}, nil
}

// An observed Batcher is asked as one, so that it stays atomic; what it leaves out of Each is reported empty.
func TestObserveKeepsBatcher(t *testing.T) {
	calls, told := 0, 0
	s := newSpy(noon)
	o := sluice.Observe(batcher{s, &calls}, sluice.ObserverFunc(func(_ context.Context, _ sluice.Ask, d sluice.Decision, _ error, _ time.Duration) {
		if told++; d != (sluice.Decision{}) {
			t.Errorf("told of %+v", d)
		}
	}))
	l := sluice.New(o, bucket(1, time.Second, 5), "rule")
	if _, err := sluice.TakeAll(t.Context(), o, []sluice.Ask{l.Ask("a", 1), l.Ask("b", 1)}); err != nil {
		t.Fatal(err)
	}
	if calls != 1 || told != 2 || len(s.seen()) != 0 {
		t.Errorf("TakeAll of the store inside called %d times, told of %d asks; want 1 and 2", calls, told)
	}
}

func TestMust(t *testing.T) {
	if got := sluice.Must(7, nil); got != 7 {
		t.Errorf("Must(7, nil) is %d", got)
	}
	defer func() {
		if r := recover(); r != errBoom {
			t.Errorf("Must panics with %v, want the error", r)
		}
	}()
	sluice.Must(7, errBoom)
}

func TestAllowAllocatesNothing(t *testing.T) {
	l, ctx := sluice.New(local.New(local.Options{}), bucket(1, time.Hour, 100), "rule"), t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Allow(ctx, "a") }); n != 0 {
		t.Errorf("Allow allocates %v times", n)
	}
}
