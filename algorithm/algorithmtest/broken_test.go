package algorithmtest

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// faulty is a sound strategy whose answers are bent.
type faulty struct {
	algorithm.Strategy
	take   func(st algorithm.Strategy, s algorithm.State, now, n int64) (algorithm.State, algorithm.Decision)
	adjust func(st algorithm.Strategy, s algorithm.State, now, n, at int64) algorithm.State
}

func (f faulty) Take(s algorithm.State, now, n int64) (algorithm.State, algorithm.Decision) {
	if f.take == nil {
		return f.Strategy.Take(s, now, n)
	}
	return f.take(f.Strategy, s, now, n)
}

func (f faulty) Adjust(s algorithm.State, now, n, at int64) algorithm.State {
	if f.adjust == nil {
		return f.Strategy.Adjust(s, now, n, at)
	}
	return f.adjust(f.Strategy, s, now, n, at)
}

// Every property can fail: each fault is caught by the property that is there for it.
func TestInvariantsCatchFaults(t *testing.T) {
	bucket, fixed, sliding := Of(tokenbucket.New), Of(fixedwindow.New), Of(slidingwindow.New)
	type state = algorithm.State
	type decision = algorithm.Decision
	for _, c := range []struct {
		property string
		build    New
		law      Law
		fault    faulty
	}{
		{"denial and zero change nothing", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if !d.Allowed && n > 0 {
				next[1]++
			}
			return next, d
		}}},
		{"many charges at one instant are one", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if d.Allowed && n > 1 {
				next[0]++ // a fee for each call
			}
			return next, d
		}}},
		{"RetryAfter is exact", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if !d.Allowed && d.RetryAfter > time.Millisecond && d.RetryAfter != algorithm.Never {
				d.RetryAfter -= time.Microsecond
			}
			return next, d
		}}},
		{"admits no more than its bound", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			if now%3 == 0 {
				s = state{}
			}
			return st.Take(s, now, n)
		}}},
		{"admits no more than its bound", fixed, Fixed(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			s[0] /= 2
			return st.Take(s, now, n)
		}}},
		{"admits no more than its bound", sliding, Sliding(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			s[0] = 0
			return st.Take(s, now, n)
		}}},
		{"decides as its model", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			d.ResetAfter = d.ResetAfter.Truncate(time.Millisecond)
			return next, d
		}}},
		{"decides as its model", bucket, Queue(), faulty{}}, // a queue without a Delay
		{"ResetAfter leads to the zero state", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			d.ResetAfter /= 2
			return next, d
		}}},
		{"a clock stepping back never credits twice", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			s[1] = min(s[1], now)
			return st.Take(s, now, n)
		}}},
		{"giving back never widens", bucket, Bucket(), faulty{adjust: func(st algorithm.Strategy, s state, now, n, at int64) state {
			return st.Adjust(s, now, 2*n, at)
		}}},
		{"a window that ended gets nothing back", fixed, Fixed(), faulty{adjust: func(st algorithm.Strategy, s state, now, n, at int64) state {
			return st.Adjust(s, now, n, now)
		}}},
		{"adding stops at one burst over", sliding, Sliding(), faulty{adjust: func(st algorithm.Strategy, s state, now, n, at int64) state {
			next := st.Adjust(s, now, n, at)
			if n > 0 {
				next[1]--
			}
			return next
		}}},
		{"any words give sane decisions", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			d.Remaining -= max(0, s[0]/algorithm.Bound)
			return next, d
		}}},
		{"UpTo takes what remains", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if !d.Allowed {
				d.Remaining /= 2
			}
			return next, d
		}}},
		{"spending never turns a denial into an allowance", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if d.Charged > 0 && d.Remaining == 0 {
				next = state{}
			}
			return next, d
		}}},
		{"edited limits stay between the two", fixed, Fixed(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if most := st.Limit().Count; d.Charged > 0 && next[0] > most/2 {
				next[0] = most/2 + 1 // a limit's own, and the smaller clamps what the larger counted
			}
			return next, d
		}}},
		{"Remaining is exact", bucket, Bucket(), faulty{take: func(st algorithm.Strategy, s state, now, n int64) (state, decision) {
			next, d := st.Take(s, now, n)
			if d.Charged > 0 {
				d.Remaining = min(d.Remaining+1, d.Limit)
			}
			return next, d
		}}},
	} {
		build := func(l algorithm.Limit) (algorithm.Strategy, error) {
			st, err := c.build(l)
			f := c.fault
			f.Strategy = st
			return f, err
		}
		if !caught(t, c.property, build, c.law) {
			t.Errorf("%s: the fault passes", c.property)
		}
	}
}

// caught runs a property with a recorder in place of the test.
func caught(t *testing.T, name string, build New, law Law) bool {
	t.Helper()
	for _, p := range properties() {
		if p.name != name {
			continue
		}
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.check(r, build, law)
		}()
		<-done
		return r.failed
	}
	t.Fatalf("no property %q", name)
	return false
}

// recorder is a test that may fail: it keeps that to itself.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Name() string          { return "recorder" }
func (r *recorder) Log(...any)            {}
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Error(...any)          { r.failed = true }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }
func (r *recorder) Fail()                 { r.failed = true }
func (r *recorder) Failed() bool          { return r.failed }
func (r *recorder) FailNow()              { r.failed = true; runtime.Goexit() }

func TestMain(m *testing.M) {
	// The faults are to be found, not to be explained.
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s", "rapid.checks": "300"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	m.Run()
}
