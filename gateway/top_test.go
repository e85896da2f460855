package gateway

import (
	"fmt"
	"testing"
	"time"
)

// start is the begin of a minute.
var start = time.Unix(1_700_000_040, 0)

func TestTop(t *testing.T) {
	var top Top
	deny := func(n int, limit, subject string, at time.Time) {
		for range n {
			top.deny(topKey{limit, hashOf(subject)}, at)
		}
	}
	deny(3, "login", "192.0.2.1", start)
	deny(2, "login", "192.0.2.2", start)
	deny(2, "login", "192.0.2.1", start.Add(time.Minute))
	deny(1, "api", "192.0.2.1", start.Add(4*time.Minute))
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{4*time.Minute + 59*time.Second, "login 1:5 login 2:2 api 1:1 "},
		{5 * time.Minute, "login 1:2 api 1:1 "},
		{8 * time.Minute, "api 1:1 "},
		{9 * time.Minute, ""},
		{-time.Minute, ""}, // a clock that steps back
	} {
		got := ""
		for _, d := range top.list(start.Add(c.after)) {
			for i := 1; i <= 2; i++ {
				if d.Subject == HashSubject(fmt.Sprintf("192.0.2.%d", i)) {
					got += fmt.Sprintf("%s %d:%d ", d.Limit, i, d.Count)
				}
			}
		}
		if got != c.want {
			t.Errorf("after %v: %q, want %q", c.after, got, c.want)
		}
	}
}

// A flood of subjects that are denied once each neither grows Top nor hides those that are denied often.
func TestTopIsBounded(t *testing.T) {
	var top Top
	const flood, often = 50_000, 40
	for i := range flood {
		top.deny(topKey{"login", hashOf(fmt.Sprint("once", i))}, start)
		if i%10 == 0 { // 5,000 denials of 40 subjects, 125 each: more than a thousandth of all
			top.deny(topKey{"login", hashOf(fmt.Sprint("often", i/10%often))}, start)
		}
	}
	s := &top.slots[(start.Unix()/60)%topSlots]
	if len(s.byKey) != topTracked || len(s.byCount) != topTracked {
		t.Errorf("%d keys and %d counters, want %d", len(s.byKey), len(s.byCount), topTracked)
	}
	sum := int64(0)
	for _, c := range s.byCount {
		sum += c.count
	}
	if want := int64(flood + flood/10); sum != want { // what is taken over is counted on
		t.Errorf("the counts add up to %d, want %d", sum, want)
	}
	list := top.list(start)
	if len(list) != topShown {
		t.Errorf("%d shown, want %d", len(list), topShown)
	}
	found := 0
	for _, d := range list {
		for i := range often {
			if d.Subject == HashSubject(fmt.Sprint("often", i)) {
				found++
				if real := int64(flood / 10 / often); d.Count < real || d.Count-d.TooMany > real {
					t.Errorf("counted %d, of which %d too many at most; want %d among them", d.Count, d.TooMany, real)
				}
			}
		}
	}
	if found != often {
		t.Errorf("%d of %d found", found, often)
	}
	k := topKey{"login", hashOf("often0")}
	if n := testing.AllocsPerRun(100, func() { top.deny(k, start) }); n > 0 {
		t.Errorf("%v allocations for a denial, want none", n)
	}
}
