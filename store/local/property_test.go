package local_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// admission is units that a key was admitted at a time.
type admission struct {
	at    int64 // µs
	units int64
}

// Whatever comes and goes at the cap, no key is admitted more than its limit allows by itself: to be evicted, to share
// a state and to find room again are no fresh burst.
func TestEvictionGivesNoFreshBurst(t *testing.T) {
	limits := []sluice.Strategy{bucket(3, time.Second, 5), bucket(1, 7*time.Second, 2), queue(2, time.Second, 4), fixed(4, 5*time.Second)}
	rapid.Check(t, func(r *rapid.T) {
		st := rapid.SampledFrom(limits).Draw(r, "limit")
		maxKeys := rapid.IntRange(1, 4).Draw(r, "cap")
		s := newTry(t, maxKeys)
		l := sluice.New(s, st, "rule")
		admitted := map[string][]admission{}
		subject := rapid.StringMatching("[a-f]")
		cost := rapid.Int64Range(0, 6)
		step := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100_000), rapid.Int64Range(0, 4_000_000), rapid.Int64Range(0, 40_000_000))
		for range rapid.IntRange(1, 80).Draw(r, "calls") {
			s.Advance(time.Duration(step.Draw(r, "step")) * time.Microsecond)
			now := algorithm.Clock(s.Now())
			note := func(subject string, charged int64) {
				admitted[subject] = append(admitted[subject], admission{now, charged})
				if wrong := above(st, admitted[subject]); wrong != "" {
					r.Fatalf("%s with room for %d keys, subject %s: %s", st.Limit(), maxKeys, subject, wrong)
				}
			}
			switch rapid.IntRange(0, 5).Draw(r, "what") {
			case 0, 1, 2:
				k := subject.Draw(r, "subject")
				note(k, s.charge(st, k, cost.Draw(r, "n")).Charged)
			case 3:
				k := subject.Draw(r, "subject")
				note(k, s.ask(sluice.UpTo, st, k, cost.Draw(r, "n")).Charged)
			case 4:
				s.ask(sluice.Peek, st, subject.Draw(r, "subject"), cost.Draw(r, "n"))
			case 5:
				var asks []sluice.Ask
				for range rapid.IntRange(1, 5).Draw(r, "asks") {
					asks = append(asks, l.Ask(subject.Draw(r, "subject"), cost.Draw(r, "n")))
				}
				v, err := s.TakeAll(t.Context(), asks)
				if err != nil {
					r.Fatal(err)
				}
				for i, a := range asks {
					note(a.Key.Subject, v.Each[i].Charged)
				}
			}
			if n := s.Len(); n > maxKeys+1 {
				r.Fatalf("%d states with room for %d keys", n, maxKeys)
			}
		}
	})
}

// above tells how the last admission exceeds the limit over any time that ends with it: Burst + Count·t/Period, or
// Count in a window; "" if it does not.
func above(st sluice.Strategy, list []admission) string {
	limit, last, units := st.Limit(), list[len(list)-1], int64(0)
	period := limit.Period.Microseconds()
	for i := len(list) - 1; i >= 0; i-- {
		a := list[i]
		if limit.Burst == 0 && a.at/period != last.at/period {
			break
		}
		units += a.units
		switch over := (units-limit.Burst)*period - limit.Count*(last.at-a.at); {
		case limit.Burst > 0 && over > 0:
			return fmt.Sprintf("%d admitted in %d µs", units, last.at-a.at)
		case limit.Burst == 0 && units > limit.Count:
			return fmt.Sprintf("%d admitted in one window", units)
		}
	}
	return ""
}

// The judge of the property knows too much when it sees it.
func TestAbove(t *testing.T) {
	for _, c := range []struct {
		st   sluice.Strategy
		list []admission
		want bool
	}{
		{bucket(1, time.Second, 2), []admission{{0, 2}}, false},
		{bucket(1, time.Second, 2), []admission{{0, 2}, {0, 1}}, true},
		{bucket(1, time.Second, 2), []admission{{0, 2}, {999_999, 1}}, true},
		{bucket(1, time.Second, 2), []admission{{0, 2}, {1_000_000, 1}}, false},
		{bucket(1, time.Second, 2), []admission{{0, 2}, {9_000_000, 2}, {9_000_000, 1}}, true},
		{fixed(2, time.Second), []admission{{999_999, 2}, {1_000_000, 2}}, false},
		{fixed(2, time.Second), []admission{{1_000_000, 2}, {1_999_999, 1}}, true},
	} {
		if got := above(c.st, c.list); (got != "") != c.want {
			t.Errorf("%v of %v: %q", c.list, c.st.Limit(), got)
		}
	}
}
