package local_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
)

// A cost above the burst is denied for ever, with coherent fields, and the state is untouched.
func TestCase_C5_CostAboveBurst(t *testing.T) {
	for _, st := range all(3, 2*time.Second) {
		s := newTry(t, 0)
		for _, n := range []int64{4, 1 << 53, math.MaxInt64} {
			if d := s.charge(st, "a", n); d.Allowed || d.RetryAfter != sluice.Never || d.Remaining != 3 || d.Charged != 0 || d.ResetAfter != 0 {
				t.Errorf("%d of 3: %+v", n, d)
			}
		}
		if d := s.charge(st, "a", 3); !d.Allowed {
			t.Errorf("then 3 of 3: %+v", d)
		}
	}
}

// A negative cost is an error and mints nothing; a cost of 0 passes and charges nothing.
func TestCase_C7_NegativeAndZeroCost(t *testing.T) {
	for _, st := range all(10, time.Hour) {
		s := newTry(t, 0)
		l, ctx := sluice.New(s, st, "rule"), t.Context()
		s.charge(st, "a", 10)
		for _, n := range []int64{-1, math.MinInt64} {
			if d, err := l.AllowN(ctx, "a", n); err == nil || d.Allowed {
				t.Errorf("AllowN(%d): %+v, %v", n, d, err)
			}
			if v, err := s.TakeAll(ctx, []sluice.Ask{l.Ask("a", n)}); err == nil || v.Allowed {
				t.Errorf("TakeAll of %d: %+v, %v", n, v, err)
			}
		}
		if d := s.charge(st, "a", 0); !d.Allowed || d.Remaining != 0 || d.Charged != 0 {
			t.Errorf("AllowN(0): %+v", d)
		}
		if d := s.charge(st, "a", 1); d.Allowed {
			t.Errorf("AllowN(1): %+v", d)
		}
	}
}

// A late stamp does not rewind the stored time, so that nothing is credited twice.
func TestCase_F1_LateStamp(t *testing.T) {
	for _, st := range all(4, 2*time.Second) {
		s := newTry(t, 0)
		admitted := int64(0)
		try := func(calls int) {
			for range calls {
				admitted += s.charge(st, "a", 1).Charged
			}
		}
		s.Advance(time.Hour)
		try(5)
		s.Advance(-10 * time.Second)
		try(1)
		s.Advance(10 * time.Second)
		try(4)
		if admitted != 4 {
			t.Errorf("%v: %d admitted, want 4", st.Limit(), admitted)
		}
	}
}

// Two callers' clocks, 20 s apart, on one key: the bound holds for the time that passed plus their skew, with sweeps
// on either clock.
func TestCase_F1_TwoClocks(t *testing.T) {
	s := newTry(t, 0)
	st, admitted := bucket(2, time.Second, 4), int64(0)
	for range 600 {
		for _, skew := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			s.Advance(skew)
			admitted += s.charge(st, "a", 1).Charged
			s.Advance(-skew)
		}
		s.Advance(100 * time.Millisecond)
	}
	if most := int64(4 + 2*(60+20)); admitted > most || admitted < 2*60 {
		t.Errorf("%d admitted in 60 s: want 120 to %d", admitted, most)
	}
}

// A first call passes at any time that a clock may show.
func TestCase_F5_ClockAtZero(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64, 0)} {
		for _, st := range all(5, time.Minute) {
			s := newTry(t, 0)
			s.Set(at)
			if d := s.charge(st, "a", 5); !d.Allowed {
				t.Errorf("%v: the burst: %+v", at, d)
			}
			if d := s.charge(st, "a", 1); d.Allowed || d.RetryAfter <= 0 {
				t.Errorf("%v: one more: %+v", at, d)
			}
		}
	}
}

// Another limit counts at the next call, and what was spent stays spent.
func TestCase_G1_NewLimitAtOnce(t *testing.T) {
	s := newTry(t, 0)
	if d := s.charge(fixed(100, time.Hour), "a", 1); d.Remaining != 99 {
		t.Errorf("first: %+v", d)
	}
	if d := s.charge(fixed(10, time.Hour), "a", 1); d.Limit != 10 || d.Remaining != 8 {
		t.Errorf("fixed window of 10: %+v, want Remaining 8", d)
	}
	s.charge(bucket(100, time.Second, 100), "a", 1)
	if d := s.charge(bucket(10, time.Second, 10), "a", 1); d.Limit != 10 || d.Remaining > 9 {
		t.Errorf("burst of 10: %+v, want Remaining at most 9", d)
	}
}

// A raised rate counts at once: no wait of the slow one remains.
func TestCase_G3_RaisedRate(t *testing.T) {
	s := newTry(t, 0)
	s.charge(bucket(10, time.Hour, 10), "a", 10)
	if d := s.charge(bucket(10, time.Minute, 10), "a", 1); d.Allowed || d.RetryAfter != 6*time.Second {
		t.Errorf("%+v, want RetryAfter 6s", d)
	}
}

// A window that is edited has the new one's end.
func TestCase_G5_EditedWindow(t *testing.T) {
	s := newTry(t, 0)
	s.charge(fixed(5, time.Hour), "a", 1)
	if d := s.charge(fixed(5, time.Minute), "a", 1); !d.Allowed || d.ResetAfter > time.Minute {
		t.Errorf("%+v, want ResetAfter at most 1m", d)
	}
}

// All keys have the same windows: one that is blocked later is freed neither early nor late.
func TestCase_K7_OneGridForAllKeys(t *testing.T) {
	s := newTry(t, 0)
	st := fixed(3, time.Minute)
	s.charge(st, "a", 3)
	s.Advance(30 * time.Second)
	s.charge(st, "b", 3)
	for range 29 {
		s.Advance(time.Second)
		for _, subject := range []string{"a", "b"} {
			if d := s.charge(st, subject, 1); d.Allowed {
				t.Fatalf("%s is freed %v before the window's end", subject, d.ResetAfter)
			}
		}
	}
	s.Advance(2 * time.Second)
	for _, subject := range []string{"a", "b"} {
		if d := s.charge(st, subject, 3); !d.Allowed || d.ResetAfter != 59*time.Second {
			t.Errorf("%s at 61s: %+v", subject, d)
		}
	}
}

// Keys are two fields, of any bytes.
func TestCase_L1_KeysDoNotCollide(t *testing.T) {
	s := local.New(local.Options{})
	st := bucket(1, 5000*24*time.Hour, 1)
	keys := []sluice.Key{
		{Rule: "a", Subject: "b:c"}, {Rule: "a:b", Subject: "c"}, {Rule: "1.2.3.4", Subject: "5/x"}, {Rule: "1.2.3.45", Subject: "/x"},
		{}, {Rule: "a"}, {Subject: "a"}, {Rule: "a", Subject: "\x00"}, {Rule: "a\x00"}, {Rule: "a", Subject: "\n"}, {Rule: "a", Subject: "%"},
		{Rule: "a", Subject: "%25"}, {Rule: "a", Subject: "{b}"}, {Rule: "{a}", Subject: "b"}, {Rule: "a", Subject: "\xff\xfe"},
	}
	for round, want := range []bool{true, false} {
		for _, k := range keys {
			if d, err := s.Take(t.Context(), sluice.Ask{Strategy: st, Key: k, N: 1}); err != nil || d.Allowed != want {
				t.Errorf("round %d, %q: %+v, %v", round, k, d, err)
			}
		}
	}
	if s.Len() != len(keys) {
		t.Errorf("%d states for %d keys", s.Len(), len(keys))
	}
}
