package redis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/storetest"
)

// pass makes the store believe that time has passed, on its own clock.
func (s *Store) pass(d time.Duration) { s.born = s.born.Add(-d) }

// remembered counts what a store remembers.
func (s *Store) remembered() (n int) {
	if places := s.denials.places.Load(); places != nil {
		for i := range places {
			if places[i].Load() != nil {
				n++
			}
		}
	}
	return n
}

func allow(t *testing.T, l *sluice.Limiter, subject string) sluice.Decision {
	t.Helper()
	d, err := l.Allow(context.Background(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestKnownDenial repeats a denial without asking Redis, until the state would allow, or a second has passed.
func TestKnownDenial(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	for name, st := range strategies(2, 24*time.Hour) {
		s := New(client, Options{Timeout: 20 * time.Second})
		l := sluice.New(s, st, "r")
		for i := range 3 {
			if d := allow(t, l, "k"); d.Allowed != (i < 2) || d.Source != sluice.Shared {
				t.Fatalf("%s: call %d: %+v", name, i, d)
			}
		}
		calls := redistest.CallsOf(t, client, func() {
			first := allow(t, l, "k")
			for range 100 {
				d := allow(t, l, "k")
				if d.Allowed || d.Source != sluice.Cached || d.RetryAfter <= 0 || d.Limit != 2 || d.Remaining != 0 || d.At < first.At {
					t.Fatalf("%s: %+v: want a known denial", name, d)
				}
			}
		})
		if calls["evalsha"] != 0 {
			t.Errorf("%s: %v: want no script call", name, calls)
		}
		s.pass(memory)
		if d := allow(t, l, "k"); d.Allowed || d.Source != sluice.Shared {
			t.Errorf("%s: after a second: %+v: want Redis asked", name, d)
		}
		if err := l.Reset(context.Background(), "k"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKnownDenialEnds lets a denial be known until the tick at which Redis would allow, by the caller's clock and by
// the server's.
func TestKnownDenialEnds(t *testing.T) {
	clock := new(storetest.Clock)
	start := time.UnixMicro(1_800_000_000_000_000)
	for name, st := range strategies(10, 500*time.Millisecond) {
		clock.Set(start)
		s := testStore(t, clock.Now)
		l := sluice.New(s, st, "r")
		var d sluice.Decision
		for range 11 {
			d = allow(t, l, "k")
		}
		for _, early := range []time.Duration{d.RetryAfter, time.Millisecond, time.Microsecond} {
			clock.Set(start.Add(d.RetryAfter - early))
			if got := allow(t, l, "k"); got.Allowed || got.Source != sluice.Cached || got.RetryAfter != early {
				t.Errorf("%s: %v early: %+v", name, early, got)
			}
		}
		clock.Set(start.Add(d.RetryAfter))
		if got := allow(t, l, "k"); !got.Allowed || got.Source != sluice.Shared {
			t.Errorf("%s: after RetryAfter: %+v", name, got)
		}
	}
	for name, st := range strategies(1, 50*time.Millisecond) {
		l := sluice.New(testStore(t, nil), st, "r")
		ctx := context.Background()
		for range 3 {
			for allow(t, l, "k").Allowed {
			}
			d := allow(t, l, "k")
			for d.RetryAfter > 0 {
				time.Sleep(d.RetryAfter) // on a real server's clock
				again := allow(t, l, "k")
				if !again.Allowed && again.Source == sluice.Shared && again.At >= d.At+d.RetryAfter.Microseconds() {
					t.Errorf("%s: %+v, denied again at or after its RetryAfter: %+v", name, d, again)
				}
				d = again
			}
		}
		if err := l.Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKnownDenialUnderway took its time on the way: Redis decided at some time between, and may allow earlier than it would
// if that was at the end. Until it surely denies no more, the answer counts from the end.
func TestKnownDenialUnderway(t *testing.T) {
	s := testStore(t, nil)
	s.pass(time.Hour)
	st := bucket(1, 100*time.Millisecond, 1)
	l := sluice.New(s, st, "r")
	a := l.Ask("k", 1)
	remember := func(ago, way time.Duration) {
		r := newRequest()
		r.ask, r.hash = a, s.hash("k")
		r.script, r.params = st.Lua()
		r.mark = s.denials.mark(r.hash)
		r.decision.At = 1_800_000_000_000_000
		full, _ := st.Take(algorithm.State{}, r.decision.At, 1)
		now := s.elapsed()
		s.denials.learn(r, full, now-int64(ago), now-int64(ago-way))
	}
	var d sluice.Decision
	remember(50*time.Millisecond, 40*time.Millisecond) // in Redis it is 10 to 50 ms later
	if !s.knownDenial(s.hash("k"), &a, &d) || d.RetryAfter > 90*time.Millisecond || d.RetryAfter < 50*time.Millisecond {
		t.Errorf("10 to 50 of 100 ms later: %+v: want a denial that counts from 10 ms", d)
	}
	s.denials.forget(s.hash("k"), &a)
	remember(300*time.Millisecond, 290*time.Millisecond) // 10 to 300 ms later
	if s.knownDenial(s.hash("k"), &a, &d) {
		t.Errorf("10 to 300 of 100 ms later: %+v: want Redis asked", d)
	}
}

// TestKnownDenialForgotten widens a limit in every way that this store does: the next call asks Redis.
func TestKnownDenialForgotten(t *testing.T) {
	ctx := context.Background()
	for name, st := range strategies(2, 24*time.Hour) {
		s := testStore(t, nil)
		l := sluice.New(s, st, "r")
		for what, widen := range map[string]func(charged sluice.Decision) error{
			"Reset":  func(sluice.Decision) error { return l.Reset(ctx, "k") },
			"Refund": func(d sluice.Decision) error { return l.Refund(ctx, "k", d) },
			"TakeAll with Settle": func(d sluice.Decision) error {
				_, err := s.TakeAll(ctx, []sluice.Ask{{Strategy: st, Key: sluice.Key{Rule: "r", Subject: "k"}, N: -1, Mode: sluice.Settle, At: d.At}})
				return err
			},
			"an edit": func(sluice.Decision) error { return nil }, // to twice as much
		} {
			if err := l.Reset(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			charged := allow(t, l, "k")
			allow(t, l, "k")
			for range 2 {
				allow(t, l, "k")
			}
			if err := widen(charged); err != nil {
				t.Fatal(err)
			}
			again := l
			if what == "an edit" {
				again = l.With(strategies(4, 24*time.Hour)[name])
			}
			if d := allow(t, again, "k"); !d.Allowed || d.Source != sluice.Shared {
				t.Errorf("%s: after %s: %+v: want it allowed", name, what, d)
			}
		}
	}
}

// TestResetWins resets a key under a flood of denials, many times: the next call of the one who reset it is never a
// known denial, whatever replies were on their way.
func TestResetWins(t *testing.T) {
	ctx := context.Background()
	s := testStore(t, nil)
	l := sluice.New(s, bucket(1_000, 5000*24*time.Hour, 1_000), "r")
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !stop.Load() {
				_, _ = l.AllowN(ctx, "k", 1_000)
			}
		})
	}
	for i := range 300 {
		if err := l.Reset(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		// Others may have spent it by now; but then Redis said so after the reset.
		if d := allow(t, l, "k"); !d.Allowed && d.Source == sluice.Cached && d.ResetAfter == 0 {
			t.Fatalf("round %d: %+v", i, d)
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := l.Reset(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	if d := allow(t, l, "k"); !d.Allowed {
		t.Errorf("after the last reset: %+v", d)
	}
}

// TestLateDenial delivers a denial after the reset that came later: it is not remembered.
func TestLateDenial(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	slow := server.Client()
	s := New(slow, Options{Timeout: 20 * time.Second, NoCoalescing: true})
	l := sluice.New(s, bucket(1, 24*time.Hour, 1), "r")
	allow(t, l, "k")
	late := make(chan struct{})
	g := &lateReplies{release: late}
	slow.AddHook(g)
	done := make(chan sluice.Decision)
	go func() {
		d, _ := l.Allow(ctx, "k")
		done <- d
	}()
	until(t, "Redis denies", func() bool { return g.executed.Load() == 1 })
	g.off.Store(true)
	if err := l.Reset(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	close(late)
	if d := <-done; d.Allowed {
		t.Fatalf("%+v: want the denial", d)
	}
	if n := s.remembered(); n != 0 {
		t.Errorf("%d denials are remembered: want none, the key was reset meanwhile", n)
	}
	if d := allow(t, l, "k"); !d.Allowed {
		t.Errorf("after the reset: %+v", d)
	}
}

// TestKnownRefusal refuses asks together by a known denial of the first.
func TestKnownRefusal(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client()
	s := New(client, Options{Timeout: 20 * time.Second})
	tight := sluice.New(s, bucket(1, 24*time.Hour, 1), "tight")
	wide := sluice.New(s, bucket(100, 24*time.Hour, 100), "wide")
	asks := []sluice.Ask{tight.Ask("k", 1), wide.Ask("k", 1)}
	want := []bool{true, false, false}
	for i := range want {
		v, err := s.TakeAll(ctx, asks)
		if err != nil || v.Allowed != want[i] {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	allow(t, tight, "k") // denied, and remembered
	calls := redistest.CallsOf(t, client, func() {
		v, err := s.TakeAll(ctx, asks)
		if err != nil || v.Allowed || v.Refused != 0 || v.Source != sluice.Cached || v.RetryAfter <= 0 || len(v.Each) != 2 || v.Each[1] != (sluice.Decision{Limit: 100}) {
			t.Errorf("%+v, %v: want a known refusal by the first", v, err)
		}
	})
	if calls["evalsha"] != 0 {
		t.Errorf("%v: want no script call", calls)
	}
	if v, err := s.TakeAll(ctx, []sluice.Ask{asks[1], asks[0]}); err != nil || v.Refused != 1 || v.Source != sluice.Shared {
		t.Errorf("%+v, %v: want Redis asked where the first may pass", v, err)
	}
}

// TestKnownDenialsAreBounded denies more subjects than are remembered: the latest are, whole and under their own names.
func TestKnownDenialsAreBounded(t *testing.T) {
	s := testStore(t, nil)
	st := bucket(1, time.Hour, 1)
	learn := func(subject string, allowed bool) {
		r := newRequest()
		r.ask = sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "r", Subject: subject}, N: 1}
		r.script, r.params = st.Lua()
		r.decision.Allowed = allowed
		r.hash = s.hash(subject)
		r.mark = s.denials.mark(r.hash)
		s.denials.learn(r, algorithm.State{1, 2, 3}, 1, 1)
	}
	learn(strings.Repeat("x", longPart+1), false)
	learn("allowed", true)
	if n := s.remembered(); n != 0 {
		t.Errorf("%d are remembered: want neither a long subject nor an allowed one", n)
	}
	for i := range 8 * mostKnown {
		learn(fmt.Sprint(i), false)
	}
	if n := s.remembered(); n > mostKnown || n < mostKnown*9/10 {
		t.Errorf("%d denials of %d are remembered: want about %d", n, 8*mostKnown, mostKnown)
	}
	places := s.denials.places.Load()
	for i := range places {
		if p := places[i].Load(); p != nil && s.hash(p.key.Subject)%mostKnown != uint64(i) {
			t.Fatalf("place %d holds %v", i, p.key)
		}
	}
}

func TestNoKnownDenials(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	s := New(client, Options{Timeout: 20 * time.Second, NoKnownDenials: true})
	l := sluice.New(s, bucket(1, 24*time.Hour, 1), "r")
	allow(t, l, "k")
	calls := redistest.CallsOf(t, client, func() {
		for range 5 {
			if d := allow(t, l, "k"); d.Allowed || d.Source != sluice.Shared {
				t.Errorf("%+v: want Redis asked", d)
			}
		}
	})
	if calls["evalsha"] != 5 || s.remembered() != 0 {
		t.Errorf("%v, %d remembered: want 5 script calls, and nothing remembered", calls, s.remembered())
	}
}

// TestKnownDenialAllocates nothing.
func TestKnownDenialAllocates(t *testing.T) {
	s := testStore(t, nil)
	l := sluice.New(s, bucket(1, 24*time.Hour, 1), "r")
	ctx := context.Background()
	for range 2 {
		allow(t, l, "k")
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Allow(ctx, "k") }); n > 0.1 { // Redis is asked once a second
		t.Errorf("%v allocations a known denial", n)
	}
}
