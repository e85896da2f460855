package local_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
)

// A flood of new keys evicts nobody: a drained key stays denied, and the new ones share one allowance.
func TestCase_K1_FloodOfNewKeys(t *testing.T) {
	const maxKeys = 1000
	for _, st := range all(5, time.Hour) {
		s := newTry(t, maxKeys)
		s.charge(st, "victim", 5)
		own, shared := int64(0), int64(0)
		for i := range 10_000 {
			charged := s.charge(st, fmt.Sprintf("new %d", i), 1).Charged
			if i < maxKeys-1 {
				own += charged
			} else {
				shared += charged
			}
			if s.charge(st, "victim", 1).Allowed {
				t.Fatalf("the victim is freed after %d new keys", i+1)
			}
		}
		if own != maxKeys-1 || shared != 5 {
			t.Errorf("%d admitted with states of their own, %d that share one; want %d and one burst of 5", own, shared, maxKeys-1)
		}
		if n := s.Len(); n != maxKeys+1 {
			t.Errorf("Len is %d, want %d and one overflow state", n, maxKeys)
		}
		if n := s.Overflows(); n != 10_000-(maxKeys-1) {
			t.Errorf("Overflows is %d, want %d", n, 10_000-(maxKeys-1))
		}
	}
}

// Over time the new keys are admitted one burst and the rate, together.
func TestCase_K1_NewKeysShareTheRate(t *testing.T) {
	st := bucket(10, time.Second, 5)
	s := newTry(t, 1)
	s.charge(bucket(1, time.Hour, 1000), "filler", 1000) // stays for all of the test
	admitted := int64(0)
	for i := range 2000 {
		s.Advance(10 * time.Millisecond)
		admitted += s.charge(st, fmt.Sprint(i), 1).Charged
	}
	if admitted != 5+10*20-1 {
		t.Errorf("%d admitted in 20s, want a burst of 5 and 10 a second", admitted)
	}
	if s.Len() != 2 {
		t.Errorf("Len is %d, want the filler and one overflow state", s.Len())
	}
}

// Each rule has an overflow state of its own: a flood on one is no denial on another.
func TestOverflowIsPerRule(t *testing.T) {
	s := newTry(t, 10)
	s.fill(bucket(1, time.Hour, 5), 10)
	take := func(rule string, st sluice.Strategy, subject string) sluice.Decision {
		d, err := sluice.New(s.Store, st, rule).Allow(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, rule := range []string{"one", "two"} {
		for _, st := range all(2, time.Hour) {
			for i, want := range []bool{true, true, false, false} {
				if d := take(rule, st, fmt.Sprint(i)); d.Allowed != want {
					t.Errorf("rule %s, new subject %d: %+v, want Allowed %v", rule, i, d, want)
				}
			}
		}
	}
	if s.Len() != 10+8 {
		t.Errorf("Len is %d, want 10 keys, and an overflow state for 2 rules of 4 algorithms", s.Len())
	}
}

// A subject that was charged on the overflow state does not get a burst anew when it finds room.
func TestRoomIsNoFreshBurst(t *testing.T) {
	for _, together := range []bool{false, true} {
		s := newTry(t, 2)
		st := bucket(1, time.Minute, 5)
		take := func(subject string, n int64) int64 {
			if !together {
				return s.charge(st, subject, n).Charged
			}
			v, err := s.TakeAll(t.Context(), []sluice.Ask{sluice.New(s, st, "rule").Ask(subject, n)})
			if err != nil {
				t.Fatal(err)
			}
			return v.Charged
		}
		s.charge(st, "a", 1)
		s.charge(st, "b", 5)
		s.Advance(59 * time.Second)
		if take("c", 5) != 5 || s.Overflows() != 1 {
			t.Fatal("c is not charged on the overflow state")
		}
		s.Advance(time.Second) // a is as good as new: there is room
		if take("c", 1) != 0 {
			t.Errorf("together %v: c passes again, 1s after its whole burst", together)
		}
		s.Advance(59 * time.Second)
		if got := take("c", 1); got != 1 || s.Len() != 3 {
			t.Errorf("together %v: c gets %d a minute after its burst, %d states; want 1 and 3: b, c and overflow", together, got, s.Len())
		}
		// Its own state is its own: c has no more to do with what others do to the shared one.
		s.Advance(4 * time.Minute)
		if got := s.left(st, "c"); got != 4 {
			t.Errorf("together %v: c has %d left after 4 minutes more, want 4", together, got)
		}
	}
}

// Reset frees its subject, also where unseen subjects start from the overflow state.
func TestResetWhileTheOverflowLasts(t *testing.T) {
	s := newTry(t, 2)
	st := bucket(1, time.Minute, 5)
	s.charge(st, "a", 1)
	s.charge(st, "b", 5)
	s.Advance(30 * time.Second)
	s.charge(st, "c", 5)
	s.Advance(30 * time.Second)
	if s.left(st, "c") != 0 || s.left(st, "d") != 0 {
		t.Fatal("c and d do not start from the overflow state")
	}
	s.ask(sluice.Reset, st, "c", 0)
	if got := s.left(st, "c"); got != 5 {
		t.Errorf("c has %d left after Reset, want 5", got)
	}
	if got := s.left(st, "d"); got != 0 {
		t.Errorf("d has %d left after c's Reset, want none", got)
	}
	s.Advance(time.Hour)
	for range 10 {
		s.left(st, "c")
		s.Advance(10 * time.Second)
	}
	if s.Len() != 0 {
		t.Errorf("%d states are kept in the end", s.Len())
	}
}

// A reset of one of those that share a state frees nobody.
func TestResetAtTheCap(t *testing.T) {
	s := newTry(t, 3)
	st := bucket(1, time.Hour, 5)
	s.fill(st, 3)
	s.charge(st, "x", 5)
	d := s.ask(sluice.Reset, st, "x", 0)
	if !d.Allowed {
		t.Errorf("Reset: %+v", d)
	}
	for _, subject := range []string{"x", "y", "z"} {
		if d := s.charge(st, subject, 1); d.Allowed {
			t.Errorf("%s passes after x's Reset", subject)
		}
	}
	s.ask(sluice.Reset, st, "filler 1", 0) // has a state of its own
	for subject, want := range map[string]int64{"filler 0": 4, "filler 1": 5, "x": 0} {
		if got := s.left(st, subject); got != want {
			t.Errorf("%s has %d left after filler 1's Reset, want %d", subject, got, want)
		}
	}
}

// An attacker who never passes leaves nothing behind.
func TestUnseenKeysMakeNoEntry(t *testing.T) {
	for _, st := range all(5, time.Hour) {
		s := newTry(t, 100)
		for i := range 1000 {
			subject := fmt.Sprint(i)
			s.ask(sluice.Peek, st, subject, 3)
			s.ask(sluice.Peek, st, subject, 6)
			s.charge(st, subject, 6)
			s.charge(st, subject, 0)
			s.ask(sluice.UpTo, st, subject, 0)
			s.ask(sluice.Settle, st, subject, -3)
			s.ask(sluice.Settle, st, subject, 0)
			s.ask(sluice.Reset, st, subject, 0)
			v, err := s.TakeAll(t.Context(), []sluice.Ask{
				{Strategy: st, Key: sluice.Key{Rule: "rule", Subject: subject}, N: 1},
				{Strategy: st, Key: sluice.Key{Rule: "rule", Subject: subject + "'"}, N: 6},
			})
			if err != nil || v.Refused != 1 {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		if s.Len() != 0 || s.Overflows() != 0 {
			t.Errorf("%v: %d states, %d overflows; want none", st.Limit(), s.Len(), s.Overflows())
		}
		s.fill(st, 100) // all room is still there
	}
}

// A charge that is given back in full leaves nothing behind.
func TestGivenBackIsForgotten(t *testing.T) {
	for _, st := range all(5, time.Hour) {
		s := newTry(t, 0)
		s.charge(st, "a", 3)
		s.ask(sluice.Settle, st, "a", -3)
		if s.Len() != 0 {
			t.Errorf("%v: %d states", st.Limit(), s.Len())
		}
		s.charge(st, "a", 3)
		s.ask(sluice.Reset, st, "a", 0)
		s.ask(sluice.Reset, st, "a", 0)
		if s.Len() != 0 {
			t.Errorf("%v: %d states after Reset", st.Limit(), s.Len())
		}
	}
}

// Denied calls sweep, too: what has gone idle is forgotten whatever the traffic is.
func TestCase_K3_DeniedCallsSweep(t *testing.T) {
	const period = 10 * time.Second // of sweeps
	for _, steps := range []int{2, 20, 2000} {
		s := newTry(t, 0)
		for i := range 100_000 {
			s.charge(bucket(1, time.Second, 1), fmt.Sprint(i), 1)
		}
		slow := bucket(1, time.Hour, 1)
		s.charge(slow, "attacker", 1)
		if s.Len() != 100_001 {
			t.Fatalf("Len is %d", s.Len())
		}
		s.Advance(time.Second) // all but one are idle
		for range steps {
			s.Advance(2 * period / time.Duration(steps))
			if s.charge(slow, "attacker", 1).Allowed {
				t.Fatal("the attacker passes")
			}
		}
		if n := s.Len(); n > 2 {
			t.Errorf("%d states are kept after two sweep periods in %d steps, want at most 2", n, steps)
		}
	}
}

// Keys are kept until their ResetAfter has passed, however often there is a sweep.
func TestSweepsKeepWhatCounts(t *testing.T) {
	for _, st := range all(4, time.Minute) {
		s := newTry(t, 0)
		for i := range 1000 {
			s.charge(st, fmt.Sprint(i), 4)
		}
		for range 59 {
			s.Advance(time.Second)
			s.charge(st, "other", 0)
		}
		if s.Len() != 1000 {
			t.Errorf("%v: %d states after 59s, want 1000", st.Limit(), s.Len())
		}
		for i := range 1000 {
			if got := s.left(st, fmt.Sprint(i)); got == 4 {
				t.Fatalf("%v: key %d is fresh after 59s", st.Limit(), i)
			}
		}
	}
}

// A store and its limiters start no goroutine, so that there is nothing to close.
func TestCase_K5_NoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	stores := make([]*local.Store, 1000)
	for i := range stores {
		stores[i] = local.New(local.Options{})
		if d, err := sluice.New(stores[i], bucket(1, time.Second, 1), "rule").Allow(t.Context(), "a"); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before 1000 stores, %d with them", before, after)
	}
	runtime.KeepAlive(stores)
}

// Room that is needed is looked for before those who need it share a state: sooner than a sweep comes by.
func TestRoomIsFoundAtTheCap(t *testing.T) {
	st := bucket(1, time.Second, 1)
	for _, c := range []struct {
		step time.Duration
		most int64
	}{{11 * time.Second, 0}, {1100 * time.Millisecond, 1000}} {
		s := newTry(t, 1000)
		for round := range 5 {
			for i := range 1000 {
				s.charge(st, fmt.Sprintf("%d of round %d", i, round), 1)
			}
			s.Advance(c.step)
		}
		if n := s.Overflows(); n > c.most {
			t.Errorf("%d of 5000 decisions on the overflow state, though all keys had ended each %v", n, c.step)
		}
	}
}

// A TakeAll takes no more room than there is.
func TestTakeAllAtTheCap(t *testing.T) {
	s := newTry(t, 10)
	st := bucket(1, time.Hour, 5)
	l := sluice.New(s, st, "rule")
	var asks []sluice.Ask
	for i := range 100 {
		asks = append(asks, l.Ask(fmt.Sprint(i), 1))
	}
	take := func(asks []sluice.Ask) sluice.Verdict {
		v, err := s.TakeAll(t.Context(), asks)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	// 10 find room, 5 more fit into the overflow state, one does not.
	if v := take(asks); v.Allowed || s.Len() != 0 {
		t.Errorf("100 new keys: Allowed %v, %d states kept; want refused, and none", v.Allowed, s.Len())
	}
	if v := take(asks[:16]); v.Allowed || s.Len() != 0 {
		t.Errorf("16 new keys: Allowed %v, %d states kept; want refused, and none", v.Allowed, s.Len())
	}
	overflows := s.Overflows()
	if v := take(asks[:15]); !v.Allowed || v.Charged != 15 || s.Len() != 11 {
		t.Errorf("15 new keys: Allowed %v, Charged %d, %d states kept; want 10 and the overflow state", v.Allowed, v.Charged, s.Len())
	}
	if n := s.Overflows() - overflows; n != 5 {
		t.Errorf("%d decisions on the overflow state, want 5", n)
	}
	if v := take(asks[50:51]); v.Allowed {
		t.Error("the overflow state is charged in full, and yet a new key passes")
	}
	// Those who found room are charged apart from the rest.
	own := 0
	for i := range 15 {
		switch s.left(st, fmt.Sprint(i)) {
		case 4:
			own++
		case 0:
		default:
			t.Errorf("key %d has %d left", i, s.left(st, fmt.Sprint(i)))
		}
	}
	if own != 10 {
		t.Errorf("%d keys have a state of their own, want 10", own)
	}
}

// An entry that has ended may be dropped to make room: not one that the same call has charged.
func TestTakeAllChargesNoDroppedEntry(t *testing.T) {
	st := bucket(1, time.Second, 1)
	for i := range 500 { // in one of 64 the two keys share a shard
		s := newTry(t, 1)
		s.charge(st, "a", 1)
		s.Advance(1500 * time.Millisecond)
		l := sluice.New(s, st, "rule")
		v, err := s.TakeAll(t.Context(), []sluice.Ask{l.Ask("a", 1), l.Ask(fmt.Sprintf("b%d", i), 1)})
		if err != nil || !v.Allowed {
			t.Fatalf("%+v, %v", v, err)
		}
		if d := s.charge(st, "a", 1); d.Allowed {
			t.Fatalf("a was charged in a TakeAll with b%d, and passes again at the same instant", i)
		}
		if s.Len() > 2 {
			t.Fatalf("Len is %d", s.Len())
		}
	}
}

// A long subject is kept as its hash.
func TestLongSubjectsTakeLittle(t *testing.T) {
	st := bucket(1, time.Hour, 5)
	s := newTry(t, 0)
	long := strings.Repeat("x", 1<<20)
	s.charge(st, long, 5)
	for _, other := range []string{long[1:], long + "x", long[:128], "y" + long[1:]} {
		if d := s.charge(st, other, 5); !d.Allowed {
			t.Errorf("a subject of %d bytes shares the state of one of %d", len(other), len(long))
		}
	}
	if d := s.charge(st, strings.Clone(long), 1); d.Allowed {
		t.Error("an equal long subject has another state")
	}

	const n = 2000
	before := heap()
	s = newTry(t, 0)
	for i := range n {
		s.charge(st, fmt.Sprintf("%d %s", i, long[:1<<15]), 1)
	}
	s.charge(st, fmt.Sprint(long), 1)
	if each := (heap() - before) / n; each > 300 {
		t.Errorf("a key with a long subject takes %d bytes, want less than 300", each)
	}
	if s.Len() != n+1 {
		t.Errorf("%d keys kept", s.Len())
	}
}

// A subject that is a part of a large text, such as a request, does not hold on to it; nor does a rule's name.
func TestSubjectsAreNotRetained(t *testing.T) {
	const n = 64
	st := bucket(1, time.Hour, 5)
	s := newTry(t, 0)
	before := heap()
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("subject %05d", i), 1<<16) // 832 kB
		s.charge(st, text[:13], 1)
		l := sluice.New(s, st, text[13:26])
		if _, err := s.TakeAll(t.Context(), []sluice.Ask{l.Ask(text[:13], 1), l.Ask(text[1:13], 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := heap() - before; kept > 8<<20 {
		t.Errorf("%d keys keep %d kB", 3*n, kept>>10)
	}
	if s.Len() != 3*n {
		t.Errorf("Len is %d, want %d", s.Len(), 3*n)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMaxKeysDefault(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt} {
		s := newTry(t, n)
		s.fill(bucket(1, time.Hour, 1), 1000)
		if s.Overflows() != 0 {
			t.Errorf("MaxKeys %d: overflows", n)
		}
	}
	if local.DefaultMaxKeys != 1<<20 {
		t.Errorf("DefaultMaxKeys is %d", local.DefaultMaxKeys)
	}
}
