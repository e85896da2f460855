package load

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/server"
)

func start(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// fake is a contender that answers by the number of the call, and after a pause.
func fake(name string, pause time.Duration, answer func(call int64) (bool, error)) contender.Contender {
	return contender.Contender{Name: name, Open: func(string, sluice.Limit) (contender.Limiter, error) {
		var calls atomic.Int64
		return contender.Limiter{
			Take: func(context.Context, string) (bool, error) {
				time.Sleep(pause)
				return answer(calls.Add(1))
			},
			Close: func() error { return nil },
		}, nil
	}}
}

// Contenders take turns, and another begins in each round; what failed is no decision.
func TestRun(t *testing.T) {
	allow := func(int64) (bool, error) { return true, nil }
	mixed := func(call int64) (bool, error) {
		if call%4 == 0 {
			return false, errors.New("no answer")
		}
		return call%2 == 0, nil
	}
	var order []string
	p := Plan{Rounds: 3, Round: 20 * time.Millisecond, Step: func(_, name string) { order = append(order, name) }}
	contenders := []contender.Contender{fake("a", time.Millisecond, allow), fake("b", 2*time.Millisecond, mixed)}
	r, err := Run(t.Context(), server.Nodes{start(t)}, Many(4, 10), contenders, p)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a warms up", "b warms up", "a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	for _, c := range contenders {
		if n := len(r.Rounds[c.Name]); n != 3 {
			t.Errorf("%s: %d rounds, want 3", c.Name, n)
		}
	}
	a, b := r.Medians("a"), r.Medians("b")
	if a.Allowed != 1 || a.Errors != 0 || a.P50 < 1000 || a.P99 < a.P50 || a.Scripts != 0 {
		t.Errorf("a: %+v: want all allowed, no errors, no scripts, and at least 1000 µs", a)
	}
	if b.Allowed <= 0.1 || b.Allowed >= 0.6 || b.Errors <= 0.1 || b.Errors >= 0.4 || b.FirstErrorText != "no answer" {
		t.Errorf("b: %+v: want a third allowed, and a quarter failed", b)
	}
	if ratio := r.Ratio("b", "a", Rate); ratio <= 0 || ratio >= 1 {
		t.Errorf("b makes %.2f of a's decisions: want fewer than a", ratio)
	}
}

// Every contender limits: with 5 an hour it allows 5, and no more. The floors allow all.
func TestContendersLimit(t *testing.T) {
	s := start(t)
	limit := sluice.Limit{Count: 5, Period: time.Hour, Burst: 5}
	for _, c := range slices.Concat(contender.All(), contender.Switched(), contender.Forms(), contender.Algorithms()) {
		if err := (server.Nodes{s}).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := c.Open(s.Addr, limit)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		allowed := 0
		for range 8 {
			ok, err := l.Take(t.Context(), "key")
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if ok {
				allowed++
			}
		}
		want := 5
		if c.Kind == contender.Floor {
			want = 8
		}
		if allowed != want {
			t.Errorf("%s: %d of 8 allowed, want %d", c.Name, allowed, want)
		}
		if err := l.Close(); err != nil {
			t.Errorf("%s: close: %v", c.Name, err)
		}
	}
}

// Limits of works deny nothing but where they are meant to, with any contender.
func TestWorksAreAsTheySay(t *testing.T) {
	s := start(t)
	p := Plan{Rounds: 1, Round: 50 * time.Millisecond}
	contenders := []contender.Contender{contender.All()[0], contender.All()[1]}
	for _, w := range []Work{Hot(2), Many(2, 10_000), Denied(2)} {
		r, err := Run(t.Context(), server.Nodes{s}, w, contenders, p)
		if err != nil {
			t.Fatal(err)
		}
		for name := range r.Rounds {
			f := r.Medians(name)
			if denies := w.Limit == deniedLimit; denies == (f.Allowed == 1) || f.Errors > 0 {
				t.Errorf("%s, %s: %.3f allowed, %.3f errors", w.Name, name, f.Allowed, f.Errors)
			}
		}
	}
}

func TestMemory(t *testing.T) {
	perKey, err := Memory(t.Context(), start(t), contender.All()[0], 1000)
	if err != nil {
		t.Fatal(err)
	}
	if perKey < 30 || perKey > 1000 {
		t.Errorf("%.0f bytes a key: want some", perKey)
	}
}

func TestApplication(t *testing.T) {
	p := Plan{Rounds: 1, Round: 50 * time.Millisecond, Step: func(string, string) {}}
	all, err := Application(t.Context(), start(t), 4, p)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range all {
		if x.P50 <= 0 || x.P99 < x.P50 || x.Reads <= 0 || (x.Rate > 0) != (i > 0) {
			t.Errorf("%+v: want GETs, and decisions wherever there is a limiter", x)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_000_000: "1,000,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d) is %q, want %q", n, got, want)
		}
	}
}
