package sluice_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// together is a spy, which is no Batcher, and the asks of a rule of 5 an hour.
func together() (*spy, *sluice.Limiter) {
	s := newSpy(noon)
	return s, sluice.New(s, bucket(5, time.Hour, 5), "rule")
}

func as(m sluice.Mode, a sluice.Ask) sluice.Ask {
	a.Mode = m
	return a
}

// brief is what matters of an ask in a list of them.
type brief struct {
	subject string
	mode    sluice.Mode
	n       int64
}

func briefs(asks []sluice.Ask) (list []brief) {
	for _, a := range asks {
		list = append(list, brief{a.Key.Subject, a.Mode, a.N})
	}
	return list
}

func TestTakeAllInOrder(t *testing.T) {
	s, l := together()
	if _, err := l.AllowN(t.Context(), "b", 2); err != nil {
		t.Fatal(err)
	}
	s.seen()
	v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{l.Ask("a", 1), l.Ask("b", 2), l.Ask("a", 3)})
	if err != nil || !v.Allowed || v.Refused != -1 || v.Charged != 6 || v.Remaining != 1 || v.Limit != 5 || v.Source != sluice.Local {
		t.Errorf("%+v, %v", v, err)
	}
	for i, want := range []int64{4, 1, 1} {
		if d := v.Each[i]; !d.Allowed || d.Remaining != want {
			t.Errorf("Each[%d] is %+v, want Remaining %d", i, d, want)
		}
	}
	want := []brief{{"a", sluice.Charge, 1}, {"b", sluice.Charge, 2}, {"a", sluice.Charge, 3}}
	if got := briefs(s.seen()); !reflect.DeepEqual(got, want) {
		t.Errorf("the store is asked %v, want %v", got, want)
	}
}

func TestTakeAllGivesBack(t *testing.T) {
	s, l := together()
	drain(t, l, "full")
	paid, err := l.AllowN(t.Context(), "paid", 4)
	if err != nil {
		t.Fatal(err)
	}
	settle := as(sluice.Settle, l.Ask("paid", -3))
	settle.At = paid.At
	s.seen()
	asks := []sluice.Ask{
		l.Ask("a", 2), as(sluice.Peek, l.Ask("a", 1)), as(sluice.UpTo, l.Ask("b", 9)), as(sluice.UpTo, l.Ask("full", 1)),
		settle, l.Ask("zero", 0), l.Ask("full", 1), l.Ask("never", 1),
	}
	v, err := sluice.TakeAll(t.Context(), s, asks)
	if err != nil || v.Allowed || v.Refused != 6 || v.Charged != 0 || v.Remaining != 0 || v.Limit != 5 || v.RetryAfter != 12*time.Minute {
		t.Errorf("%+v, %v; want refused by ask 6", v, err)
	}
	want := append(briefs(asks[:7]), []brief{
		{"paid", sluice.Settle, 3}, {"b", sluice.Settle, -5}, {"a", sluice.Settle, -2},
	}...)
	got := s.seen()
	if !reflect.DeepEqual(briefs(got), want) {
		t.Errorf("the store is asked %v, want %v: given back last first, no Peek, nothing where nothing was charged", briefs(got), want)
	}
	for _, a := range got[7:] {
		if a.At != noon().UnixMicro() {
			t.Errorf("given back as of %d, want the time of the charge", a.At)
		}
	}
	for i, want := range []int64{5, 3, 5, 0, 1, 5, 0} {
		d := v.Each[i]
		if d.Allowed || d.Charged != 0 || i != 1 && d.Remaining != want {
			t.Errorf("Each[%d] is %+v; want denied, nothing charged, Remaining %d", i, d, want)
		}
	}
	if v.Each[7] != (sluice.Decision{Limit: 5}) {
		t.Errorf("Each[7], after the refusing ask, is %+v; want Limit alone", v.Each[7])
	}
	for subject, want := range map[string]int64{"a": 5, "b": 5, "full": 0, "paid": 1, "zero": 5, "never": 5} {
		left(t, l, subject, want)
	}
}

// A Peek refuses as a charge does.
func TestTakeAllPeekRefuses(t *testing.T) {
	s, l := together()
	v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{l.Ask("a", 3), as(sluice.Peek, l.Ask("a", 3)), l.Ask("b", 1)})
	if err != nil || v.Refused != 1 || v.Allowed {
		t.Errorf("%+v, %v", v, err)
	}
	left(t, l, "a", 5)
	left(t, l, "b", 5)
}

// UpTo never refuses, also where it got nothing: its own decision says so.
func TestTakeAllUpTo(t *testing.T) {
	s, l := together()
	drain(t, l, "full")
	v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{as(sluice.UpTo, l.Ask("full", 2)), as(sluice.UpTo, l.Ask("a", 9)), l.Ask("b", 1)})
	if err != nil || v.Refused != -1 || v.Charged != 6 || v.RetryAfter != 24*time.Minute {
		t.Errorf("%+v, %v", v, err)
	}
	if v.Each[0].Allowed || v.Each[1].Charged != 5 || v.Each[2].Charged != 1 {
		t.Errorf("Each is %+v", v.Each)
	}
}

// To undo a Settle takes no more than that can have done, be it absurdly large: what was owed before stays owed.
func TestTakeAllUndoesNoMoreThanWasSettled(t *testing.T) {
	for _, c := range []struct{ spent, n, least, most int64 }{
		{2, 1, 2, 2}, {2, 3, 2, 2}, {5, 5, 5, 5}, {5, 100, 5, 10}, {2, math.MaxInt64, 2, 10},
		{4, -3, 4, 4}, {4, -4, 4, 4}, {4, math.MinInt64, 4, 10},
	} {
		s, l := together()
		drain(t, l, "full")
		d, err := l.AllowN(t.Context(), "a", c.spent)
		if err != nil {
			t.Fatal(err)
		}
		a := as(sluice.Settle, l.Ask("a", c.n))
		a.At = d.At
		if v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{a, l.Ask("full", 1)}); err != nil || v.Refused != 1 {
			t.Fatalf("%+v, %v", v, err)
		}
		d, err = l.Peek(t.Context(), "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		spent := int64(d.ResetAfter / (12 * time.Minute))
		if spent < c.least || spent > c.most {
			t.Errorf("%d spent, Settle %d undone: %d spent; want %d to %d", c.spent, c.n, spent, c.least, c.most)
		}
	}
}

func TestTakeAllErrorMidway(t *testing.T) {
	s, l := together()
	s.fail = func(a sluice.Ask) error {
		if a.Key.Subject == "bad" {
			return errBoom
		}
		return nil
	}
	v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{l.Ask("a", 2), l.Ask("b", 1), l.Ask("bad", 1), l.Ask("c", 1)})
	if err != errBoom || v.Allowed || v.Each != nil {
		t.Errorf("%+v, %v; want the store's error", v, err)
	}
	want := []brief{{"a", 0, 2}, {"b", 0, 1}, {"bad", 0, 1}, {"b", sluice.Settle, -1}, {"a", sluice.Settle, -2}}
	if got := briefs(s.seen()); !reflect.DeepEqual(got, want) {
		t.Errorf("the store is asked %v, want %v", got, want)
	}
	for _, subject := range []string{"a", "b", "c"} {
		left(t, l, subject, 5)
	}
}

// Where giving back fails, the charge stays: the safe side. The others are given back all the same.
func TestTakeAllCannotGiveBack(t *testing.T) {
	s, l := together()
	drain(t, l, "full")
	s.fail = func(a sluice.Ask) error {
		if a.Mode == sluice.Settle && a.Key.Subject == "b" {
			return errBoom
		}
		return nil
	}
	v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{l.Ask("a", 2), l.Ask("b", 2), l.Ask("full", 1)})
	if err != nil || v.Refused != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	left(t, l, "a", 5)
	left(t, l, "b", 3)
}

// The caller may have gone: what was charged is given back nevertheless, within a second.
func TestTakeAllGivesBackAfterCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(nil)
		l := sluice.New(s, bucket(5, time.Hour, 5), "rule")
		ctx, cancel := context.WithCancel(t.Context())
		s.fail = func(a sluice.Ask) error {
			if a.Key.Subject == "slow" {
				cancel()
				return ctx.Err()
			}
			return nil
		}
		if _, err := sluice.TakeAll(ctx, s, []sluice.Ask{l.Ask("a", 2), l.Ask("slow", 2)}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
		left(t, l, "a", 5)

		hangs := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
			if a.Mode == sluice.Settle {
				<-ctx.Done()
				return sluice.Decision{}, ctx.Err()
			}
			return s.inner.Take(ctx, a)
		})
		start := time.Now()
		v, err := sluice.TakeAll(t.Context(), hangs, []sluice.Ask{l.Ask("a", 2), l.Ask("b", 2), l.Ask("c", 6)})
		if err != nil || v.Refused != 2 || time.Since(start) != time.Second {
			t.Errorf("a store that hangs: %+v, %v after %v; want refused after 1s", v, err, time.Since(start))
		}
	})
}

// What can't be taken together is refused before anything is asked.
func TestTakeAllCost(t *testing.T) {
	for _, bad := range []sluice.Ask{
		{Strategy: bucket(1, time.Second, 1), Mode: sluice.Reset},
		{Strategy: bucket(1, time.Second, 1), N: -1},
		{Strategy: bucket(1, time.Second, 1), N: -1, Mode: sluice.Peek},
		{Strategy: bucket(1, time.Second, 1), N: math.MinInt64, Mode: sluice.UpTo},
	} {
		s, l := together()
		v, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{l.Ask("a", 1), bad})
		if !errors.Is(err, sluice.ErrCost) || v.Allowed {
			t.Errorf("%v %d: %+v, %v; want ErrCost", bad.Mode, bad.N, v, err)
		}
		if n := len(s.seen()); n != 0 {
			t.Errorf("%v %d: the store is asked %d times", bad.Mode, bad.N, n)
		}
	}
	s, l := together()
	for _, bad := range []sluice.Ask{{}, {Strategy: bucket(1, time.Second, 1), Mode: 9}} {
		if _, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{l.Ask("a", 1), bad}); err == nil || errors.Is(err, sluice.ErrCost) {
			t.Errorf("%+v: %v; want an error that is not ErrCost", bad, err)
		}
	}
}

func TestTakeAllOfNothing(t *testing.T) {
	s, _ := together()
	v, err := sluice.TakeAll(t.Context(), s, nil)
	if err != nil || !v.Allowed || v.Refused != -1 || len(v.Each) != 0 || len(s.seen()) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestTakeAllUsesTheBatcher(t *testing.T) {
	calls := 0
	s, l := together()
	if _, err := sluice.TakeAll(t.Context(), batcher{s, &calls}, []sluice.Ask{l.Ask("a", 1)}); err != nil || calls != 1 || len(s.seen()) != 0 {
		t.Errorf("%v; TakeAll of the store called %d times", err, calls)
	}
}

func TestSum(t *testing.T) {
	d := func(charged, limit, remaining int64, retry, reset, delay time.Duration, from sluice.Source) sluice.Decision {
		return sluice.Decision{Allowed: true, Source: from, Charged: charged, Limit: limit, Remaining: remaining,
			RetryAfter: retry, ResetAfter: reset, Delay: delay, At: 42}
	}
	for _, c := range []struct {
		name string
		each []sluice.Decision
		want sluice.Decision
	}{
		{"none", nil, sluice.Decision{Allowed: true}},
		{"one", []sluice.Decision{d(1, 5, 4, 0, 3, 2, sluice.Local)}, d(1, 5, 4, 0, 3, 2, sluice.Local)},
		{"the total, the least, the greatest", []sluice.Decision{
			d(1, 10, 9, 0, 7, 1, sluice.Shared), d(2, 5, 3, 0, 2, 6, sluice.Local), d(0, 8, 8, 4, 1, 0, sluice.Shared),
		}, d(3, 5, 3, 4, 7, 6, sluice.Local)},
		{"the first binds among equals", []sluice.Decision{d(1, 10, 3, 0, 0, 0, 0), d(1, 20, 3, 0, 0, 0, 0)}, d(2, 10, 3, 0, 0, 0, 0)},
	} {
		v := sluice.Sum(c.each)
		if v.Decision != c.want || v.Refused != -1 || !reflect.DeepEqual(v.Each, c.each) {
			t.Errorf("%s: %+v, want %+v", c.name, v, c.want)
		}
	}
}

func TestRefuse(t *testing.T) {
	_, l := together()
	other := sluice.New(nil, fixed(20, time.Hour), "other")
	asks := []sluice.Ask{l.Ask("a", 1), other.Ask("b", 1), l.Ask("c", 1), other.Ask("d", 1)}
	each := []sluice.Decision{
		{Allowed: true, Charged: 1, Limit: 5, Remaining: 4, ResetAfter: 90, Delay: 3, At: 41},
		{Allowed: true, Charged: 1, Limit: 20, Remaining: 1, ResetAfter: 5, At: 42, Source: sluice.Cached},
		{Limit: 5, Remaining: 2, RetryAfter: 60, ResetAfter: 60, At: 43},
		{Allowed: true, Charged: 7, Limit: 20, RetryAfter: 1000},
	}
	v := sluice.Refuse(asks, each, 2)
	want := sluice.Verdict{
		Decision: sluice.Decision{Source: sluice.Cached, Limit: 5, Remaining: 1, RetryAfter: 60, ResetAfter: 90, At: 43},
		Refused:  2,
		Each: []sluice.Decision{
			{Limit: 5, Remaining: 4, ResetAfter: 90, At: 41},
			{Limit: 20, Remaining: 1, ResetAfter: 5, At: 42, Source: sluice.Cached},
			{Limit: 5, Remaining: 2, RetryAfter: 60, ResetAfter: 60, At: 43},
			{Limit: 20},
		},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v\nwant %+v", v, want)
	}
}

func TestDecideAll(t *testing.T) {
	const now = 1_700_000_000_000_000
	st := bucket(1, time.Second, 5)
	state := func(spent int64) algorithm.State {
		s, _ := st.Take(algorithm.State{}, now, spent)
		return s
	}
	ask := func(m sluice.Mode, n int64) sluice.Ask { return sluice.Ask{Strategy: st, N: n, Mode: m, At: now} }
	for _, c := range []struct {
		name    string
		asks    []sluice.Ask
		on      []int   // the state of each ask
		spent   []int64 // before
		after   []int64
		refused int
		each    []int64 // Remaining
	}{
		{"nothing", nil, nil, []int64{2}, []int64{2}, -1, nil},
		{"two keys", []sluice.Ask{ask(sluice.Charge, 1), ask(sluice.Charge, 2)}, []int{0, 1}, []int64{0, 3}, []int64{1, 5}, -1, []int64{4, 0}},
		{"one key twice", []sluice.Ask{ask(sluice.Charge, 2), ask(sluice.Charge, 3)}, []int{0, 0}, []int64{0}, []int64{5}, -1, []int64{3, 0}},
		{"one key twice, refused", []sluice.Ask{ask(sluice.Charge, 2), ask(sluice.Charge, 4)}, []int{0, 0}, []int64{0}, []int64{0}, 1, []int64{5, 5}},
		{"settled, then refused", []sluice.Ask{ask(sluice.Settle, -3), ask(sluice.Settle, 1), ask(sluice.Charge, 6)}, []int{0, 0, 1}, []int64{4, 1}, []int64{4, 1}, 2, []int64{1, 1, 4}},
		{"given back, then charged", []sluice.Ask{ask(sluice.Settle, -3), ask(sluice.Charge, 3)}, []int{0, 0}, []int64{4}, []int64{4}, -1, []int64{4, 1}},
		{"a peek refuses", []sluice.Ask{ask(sluice.Charge, 4), ask(sluice.Peek, 2), ask(sluice.Charge, 1)}, []int{0, 0, 1}, []int64{0, 0}, []int64{0, 0}, 1, []int64{5, 5, 0}},
		{"a peek charges nothing", []sluice.Ask{ask(sluice.Peek, 5), ask(sluice.Charge, 5)}, []int{0, 0}, []int64{0}, []int64{5}, -1, []int64{5, 0}},
		{"upto never refuses", []sluice.Ask{ask(sluice.UpTo, 9), ask(sluice.UpTo, 9)}, []int{0, 0}, []int64{2}, []int64{5}, -1, []int64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			states := make([]algorithm.State, len(c.spent))
			for i, n := range c.spent {
				states[i] = state(n)
			}
			kept := make([]*algorithm.State, len(c.asks))
			for i, k := range c.on {
				kept[i] = &states[k]
			}
			v := sluice.DecideAll(c.asks, kept, now, sluice.Local)
			denied := slices.ContainsFunc(v.Each, func(d sluice.Decision) bool { return !d.Allowed }) // also an UpTo of nothing
			if v.Refused != c.refused || v.Allowed == denied || len(v.Each) != len(c.asks) {
				t.Errorf("%+v, want Refused %d", v, c.refused)
			}
			for i, want := range c.each {
				d := v.Each[i]
				decided := c.refused < 0 || i <= c.refused
				if decided && (d.Remaining != want || d.Source != sluice.Local || d.At != now) || !decided && d != (sluice.Decision{Limit: 5}) {
					t.Errorf("Each[%d] is %+v, want Remaining %d", i, d, want)
				}
			}
			for i, want := range c.after {
				if states[i] != state(want) {
					t.Errorf("state %d is %v, want that of %d spent, %v", i, states[i], want, state(want))
				}
			}
		})
	}
}
