package inprocess

import (
	"testing"
	"time"
)

// Every keyed contender limits: with 5 in a period it allows 5, and no more, on each key.
func TestContendersLimit(t *testing.T) {
	for _, c := range All() {
		if !c.Keyed {
			continue
		}
		l, err := c.Open(5)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, key := range []string{"a", "b"} {
			allowed := 0
			for range 8 {
				if l.Take(key) {
					allowed++
				}
			}
			if allowed != 5 {
				t.Errorf("%s: %d of 8 allowed, want 5", c.Name, allowed)
			}
		}
		if l.Close != nil {
			l.Close()
		}
	}
}

func TestMeasure(t *testing.T) {
	times, err := Measure(t.Context(), 2, 2, 5*time.Millisecond, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(times) != len(All()) {
		t.Errorf("%d contenders, want %d", len(times), len(All()))
	}
	for _, x := range times {
		if x.Nanos <= 0 || len(x.Rounds) != 2 || x.Goroutines != 2 {
			t.Errorf("%+v: want a time of two rounds", x)
		}
	}
}

// A key takes at least its state, and not a hundred times that.
func TestMeasureMemory(t *testing.T) {
	all, err := MeasureMemory(t.Context(), []int{10_000}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Bytes < 8 || m.Bytes > 2000 {
			t.Errorf("%+v: want 8 to 2000 bytes", m)
		}
	}
}
