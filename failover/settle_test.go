package failover_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
)

// slow is a limit that regains next to nothing in a test.
var slow = bucket(100, 24*365*time.Hour)

// recover brings the primary back and waits until it decides.
func (p *pair) recover(t testing.TB) {
	t.Helper()
	p.primary.off.Store(false)
	time.Sleep(time.Second + 1)
	take(t, p.Store, ask(slow, "probe", 1))
	if got := p.State(); got != failover.Closed {
		t.Fatalf("the breaker is %v, want closed", got)
	}
}

// A reservation made in the primary and settled in an outage waits for its store; the fallback gives nothing back.
func TestSettleWaitsForItsStore(t *testing.T) {
	for _, batch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, failover.Options{})
			a := ask(slow, "a", 40)
			d := take(t, p.Store, a)
			take(t, p.Store, ask(slow, "a", 20))
			time.Sleep(time.Millisecond)
			p.trip(t, slow)
			take(t, p.Store, ask(slow, "a", 1)) // carried: 39 left
			if got := remaining(t, p.fallback, a); got != 39 {
				t.Errorf("the fallback has %d left, want 39", got)
			}
			settle := mode(ask(slow, "a", -30), sluice.Settle, d.At)
			if batch {
				v, err := sluice.TakeAll(t.Context(), p.Store, []sluice.Ask{ask(slow, "b", 1), settle})
				if err != nil || !v.Allowed || v.Each[1].Charged != 0 || v.Each[1].Remaining != 39 {
					t.Errorf("in the outage: %+v, %v", v, err)
				}
			} else if s := take(t, p.Store, settle); !s.Allowed || s.Charged != 0 || s.Remaining != 39 {
				t.Errorf("in the outage: %+v, want allowed, with nothing given back", s)
			}
			if got := remaining(t, p.fallback, a); got != 39 {
				t.Errorf("the fallback has %d left, want 39 still", got)
			}
			if got := remaining(t, p.primary.store, a); got != 40 {
				t.Errorf("the primary has %d left before it is back, want 40", got)
			}
			p.recover(t)
			synctest.Wait()
			if got := remaining(t, p.primary.store, a); got != 70 {
				t.Errorf("the primary has %d left after it is back, want 70: the Settle has reached it, once", got)
			}
		})
	}
}

// What the fallback charged is given back to the fallback, also after the outage, and never to the primary.
func TestSettleOfTheFallback(t *testing.T) {
	for _, batch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, failover.Options{})
			a := ask(slow, "a", 10)
			take(t, p.Store, a)
			time.Sleep(time.Millisecond)
			p.trip(t, slow)
			d := take(t, p.Store, ask(slow, "a", 40))
			if d.Source != sluice.Local || d.Remaining != 50 {
				t.Fatalf("in the outage: %+v, want 50 left", d)
			}
			take(t, p.Store, mode(ask(slow, "a", -10), sluice.Settle, d.At))
			if got := remaining(t, p.fallback, a); got != 60 {
				t.Errorf("settled in the outage: the fallback has %d left, want 60", got)
			}
			p.recover(t)
			take(t, p.Store, ask(slow, "a", 1)) // carried: 59 left
			settle := mode(ask(slow, "a", -10), sluice.Settle, d.At)
			if batch {
				if _, err := sluice.TakeAll(t.Context(), p.Store, []sluice.Ask{ask(slow, "b", 1), settle}); err != nil {
					t.Error(err)
				}
			} else {
				take(t, p.Store, settle)
			}
			if primary, fallback := remaining(t, p.primary.store, a), remaining(t, p.fallback, a); primary != 59 || fallback != 70 {
				t.Errorf("settled afterwards: the primary has %d left, the fallback %d; want 59 and 70", primary, fallback)
			}
		})
	}
}

// Assumed charges are nobody's: settling one gives nothing back to the primary, and owes it nothing.
func TestSettleOfAssumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		s := p.Guard(p.primary, failover.AllowAll{})
		take(t, s, ask(slow, "a", 50))
		p.trip(t, slow)
		l := sluice.New(s, slow, "api")
		for _, actual := range []int64{3, 40} {
			r, err := l.Reserve(t.Context(), "a", 20)
			if err != nil || r.Decision().Source != sluice.Assumed {
				t.Fatalf("%+v, %v", r.Decision(), err)
			}
			defer func() { // one in the outage, one after it
				if err := r.Settle(t.Context(), actual); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if got := remaining(t, p.primary.store, ask(slow, "a", 0)); got != 50 {
					t.Errorf("settled at %d: the primary has %d left, want 50", actual, got)
				}
			}()
		}
		p.recover(t)
		synctest.Wait()
	})
}

// At most 1,024 Settles wait, the oldest are dropped: their estimates stay charged.
func TestSettlesWaitingAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		const n = 1500
		st := bucket(10_000, 24*365*time.Hour)
		a := ask(st, "a", n)
		d := take(t, p.Store, a)
		p.trip(t, slow)
		for range n {
			take(t, p.Store, mode(ask(st, "a", -1), sluice.Settle, d.At))
		}
		p.recover(t)
		synctest.Wait()
		if got := remaining(t, p.primary.store, a); got != 10_000-n+1024 {
			t.Errorf("%d were given back, want 1024", got-10_000+n)
		}
	})
}

// A Settle that was sent is not sent again: it may have been executed.
func TestSettleIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		executed := 0
		b := failover.New(failover.Options{})
		defer b.Close()
		lost := &fake{f: func(context.Context) error { executed++; return errAway }}
		s := b.Guard(lost, failover.AllowAll{})
		take(t, s, mode(ask(slow, "a", -1), sluice.Settle, 1))
		if executed != 1 {
			t.Errorf("executed %d times", executed)
		}
		lost.f = works
		for range 10 {
			take(t, s, ask(slow, "a", 1))
		}
		synctest.Wait()
		if got := lost.calls.Load(); got != 11 {
			t.Errorf("%d calls, want 11: the Settle was sent again", got)
		}
	})
}

// A refused TakeAll settles nothing, now or later.
func TestRefusedBatchSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		d := take(t, p.Store, ask(slow, "a", 40))
		p.trip(t, slow)
		v, err := sluice.TakeAll(t.Context(), p.Store, []sluice.Ask{mode(ask(slow, "a", -30), sluice.Settle, d.At), ask(slow, "b", 101)})
		if err != nil || v.Refused != 1 {
			t.Fatalf("%+v, %v", v, err)
		}
		p.recover(t)
		synctest.Wait()
		if got := remaining(t, p.primary.store, ask(slow, "a", 0)); got != 60 {
			t.Errorf("the primary has %d left, want 60", got)
		}
	})
}

// Reset frees a subject in both stores, whenever it is called.
func TestReset(t *testing.T) {
	for _, when := range []string{"before", "in", "after"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, failover.Options{})
			reset := func(now string) {
				if now == when {
					take(t, p.Store, mode(ask(slow, "a", 0), sluice.Reset, 0))
				}
			}
			want := func(what string, n int64) {
				t.Helper()
				if got := take(t, p.Store, ask(slow, "a", 1)).Remaining; got != n {
					t.Errorf("reset %s the outage, %s: %d left, want %d", when, what, got, n)
				}
			}
			take(t, p.Store, ask(slow, "a", 60))
			reset("before")
			p.trip(t, slow)
			want("in it", map[string]int64{"before": 99, "in": 39, "after": 39}[when])
			reset("in")
			want("in it, again", map[string]int64{"before": 98, "in": 99, "after": 38}[when])
			p.recover(t)
			synctest.Wait()
			want("after it", map[string]int64{"before": 97, "in": 98, "after": 37}[when])
			reset("after")
			want("after it, again", map[string]int64{"before": 96, "in": 97, "after": 99}[when])
		})
	}
}

// Where more charges were made than are remembered, what can't be told apart stays charged; all else goes its way.
func TestSettleOfForgottenCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		st := bucket(1_000_000, 24*365*time.Hour)
		a := ask(st, "a", 1)
		before := take(t, p.Store, ask(st, "a", 100))
		time.Sleep(time.Millisecond)
		p.trip(t, slow)
		first := take(t, p.Store, a)
		var last sluice.Decision
		for range 2000 {
			time.Sleep(time.Microsecond)
			last = take(t, p.Store, a)
		}
		want := func(what string, d sluice.Decision, back int64) {
			t.Helper()
			was := remaining(t, p.fallback, a)
			take(t, p.Store, mode(ask(st, "a", -d.Charged), sluice.Settle, d.At))
			if got := remaining(t, p.fallback, a) - was; got != back {
				t.Errorf("%s: the fallback got %d back, want %d", what, got, back)
			}
		}
		want("one that is remembered", last, 1)
		want("one that is forgotten", first, 0)
		want("the primary's from before", before, 0)
		p.recover(t)
		synctest.Wait()
		if got := remaining(t, p.primary.store, a); got != 1_000_000 {
			t.Errorf("the primary has %d left, want all: its own was given back, and no more", got)
		}
	})
}

func ExampleBreaker_Guard() {
	breaker := failover.New(failover.Options{Instances: 4})
	defer breaker.Close()
	redis := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable // store/redis, usually
	})
	store := breaker.Guard(redis, failover.DenyAll{}) // or local.NewBuckets(local.BucketsOptions{Share: breaker.Share})
	d, err := sluice.New(store, slow, "login").Allow(context.Background(), "203.0.113.7")
	fmt.Println(d.Allowed, d.Source, d.RetryAfter, err)
	// Output: false assumed 1s <nil>
}
