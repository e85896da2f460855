package failover_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

// The store that takes a key over is charged down to what the other had left, both ways, once.
func TestCarry(t *testing.T) {
	for _, share := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, failover.Options{Instances: share})
			a := ask(slow, "a", 1)
			take(t, p.Store, ask(slow, "a", 60))
			p.trip(t, slow)
			held := int64(100 / share)
			if d, want := take(t, p.Store, a), held*40/100-1; d.Remaining != want || d.Limit != held {
				t.Errorf("share 1/%d, into the outage: %d of %d left, want %d of %d", share, d.Remaining, d.Limit, want, held)
			}
			for range 3 { // once, not at each ask
				take(t, p.Store, a)
			}
			left := held*40/100 - 4
			if got := remaining(t, p.fallback, a); got != left {
				t.Errorf("share 1/%d, in the outage: %d left, want %d", share, got, left)
			}
			p.recover(t)
			want := left * int64(share)
			if got := take(t, p.Store, a).Remaining; got != want-1 {
				t.Errorf("share 1/%d, after it: %d left, want %d", share, got, want-1)
			}
			take(t, p.Store, a)
			if got := remaining(t, p.primary.store, a); got != want-2 {
				t.Errorf("share 1/%d, after it: %d left, want %d", share, got, want-2)
			}
			if got := remaining(t, p.Store, ask(slow, "unseen", 1)); got != 100 {
				t.Errorf("a key that is not seen has %d left, want 100", got)
			}
		})
	}
}

// What is regained between the last decision and the take-over is not charged.
func TestCarryAges(t *testing.T) {
	second := bucket(100, time.Second)
	for _, c := range []struct {
		st     sluice.Strategy
		pause  time.Duration
		charge int64
		want   int64 // left right after the take-over
	}{
		{second, 0, 80, 20}, {second, 300 * time.Millisecond, 80, 50}, {second, 800 * time.Millisecond, 80, 100}, {second, time.Hour, 80, 100},
		{window(100, time.Minute), 0, 80, 20}, {window(100, time.Minute), 30 * time.Second, 80, 20}, {window(100, time.Minute), time.Minute, 80, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, failover.Options{TripAfter: 1})
			take(t, p.Store, ask(c.st, "a", c.charge))
			p.trip(t, slow)
			time.Sleep(c.pause)
			if got := remaining(t, p.Store, ask(c.st, "a", 1)); got != c.want {
				t.Errorf("%v, %d charged, %v later: %d left, want %d", c.st.Limit(), c.charge, c.pause, got, c.want)
			}
		})
	}
}

// A debt is carried as an empty bucket that stays empty until the debt is paid.
func TestCarryDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, st := newPair(t, failover.Options{TripAfter: 1}), bucket(100, time.Second)
		d := take(t, p.Store, ask(st, "a", 100))
		take(t, p.Store, mode(ask(st, "a", 50), sluice.Settle, d.At)) // half a second in debt
		p.trip(t, slow)
		time.Sleep(400 * time.Millisecond)
		if got := remaining(t, p.Store, ask(st, "a", 1)); got != 0 {
			t.Errorf("in debt still: %d left, want 0", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := remaining(t, p.Store, ask(st, "a", 1)); got != 20 {
			t.Errorf("200ms later: %d left, want 20", got)
		}
	})
}

// A store that flaps can't be farmed, however fast, and its users lose little.
func TestFlapping(t *testing.T) {
	for _, every := range []time.Duration{200 * time.Millisecond, time.Second, 1500 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p, st := newPair(t, failover.Options{OpenFor: 100 * time.Millisecond}), bucket(100, time.Second)
			const seconds = 30
			admitted, start := int64(0), time.Now()
			for time.Since(start) < seconds*time.Second {
				p.primary.off.Store(time.Since(start)/every%2 == 1)
				admitted += take(t, p.Store, ask(st, "a", 1)).Charged
				time.Sleep(2500 * time.Microsecond)
			}
			ratio := float64(admitted) / (100 + 100*seconds)
			t.Logf("flapping every %v: %.3f of the bound", every, ratio)
			if ratio > 1 || ratio < 0.9 {
				t.Errorf("flapping every %v: %.3f of the bound, want 0.9 to 1", every, ratio)
			}
		})
	}
}

// Many callers that find a key to be carried charge it once, and none passes before it is.
func TestCarryRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		all := func() (charged int64) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() {
					d, err := p.Store.Take(t.Context(), ask(slow, "a", 1))
					mu.Lock()
					defer mu.Unlock()
					charged += d.Charged
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return charged
		}
		take(t, p.Store, ask(slow, "a", 70))
		p.trip(t, slow)
		if got := all(); got != 30 {
			t.Errorf("into the outage: %d admitted, want 30", got)
		}
		take(t, p.Store, mode(ask(slow, "a", 0), sluice.Reset, 0))
		take(t, p.Store, ask(slow, "a", 70))
		p.recover(t)
		if got := all(); got != 30 {
			t.Errorf("out of it: %d admitted, want 30", got)
		}
	})
}

// While a key is being carried to the primary, the fallback decides on it, and nobody waits.
func TestCarryBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := failover.New(failover.Options{})
		defer b.Close()
		exact := local.New(local.Options{Clock: time.Now})
		hang, off := make(chan struct{}), true
		primary := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
			if off {
				return sluice.Decision{}, errAway
			}
			if a.Mode == sluice.UpTo {
				<-hang
			}
			d, err := exact.Take(ctx, a)
			d.Source = sluice.Shared
			return d, err
		})
		s := b.Guard(primary, local.NewBuckets(local.BucketsOptions{Clock: time.Now}))
		a := ask(slow, "a", 1)
		take(t, s, ask(slow, "a", 10)) // by the fallback
		off = false
		done := make(chan sluice.Decision)
		go func() {
			d, _ := s.Take(t.Context(), a)
			done <- d
		}()
		synctest.Wait()
		if d := take(t, s, a); d.Source != sluice.Local || d.Remaining != 89 {
			t.Errorf("meanwhile: %+v, want the fallback's, 89 left", d)
		}
		close(hang)
		if d := <-done; d.Source != sluice.Shared || d.Remaining != 89 {
			t.Errorf("the carrier: %+v, want the primary's, 89 left", d)
		}
		if d := take(t, s, a); d.Source != sluice.Shared || d.Remaining != 88 {
			t.Errorf("afterwards: %+v, want the primary's, 88 left", d)
		}
	})
}

// A batch is carried too, is all or none in either store, and has the fallback's verdict in an outage.
func TestTakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		asks := []sluice.Ask{ask(slow, "a", 10), ask(slow, "b", 20), ask(slow, "a", 10)}
		want := func(when string, source sluice.Source, refused int, left ...int64) {
			t.Helper()
			v, err := sluice.TakeAll(t.Context(), p.Store, asks)
			if err != nil || v.Source != source || v.Refused != refused || v.Allowed != (refused < 0) {
				t.Errorf("%s: %+v, %v; want %v, refused %d", when, v, err, source, refused)
				return
			}
			for i, n := range left {
				if v.Each[i].Remaining != n {
					t.Errorf("%s: ask %d has %d left, want %d", when, i, v.Each[i].Remaining, n)
				}
			}
		}
		want("before", sluice.Shared, -1, 90, 80, 80)
		p.trip(t, slow)
		want("in the outage", sluice.Local, -1, 70, 60, 60)
		asks[1].N = 61
		want("in the outage", sluice.Local, 1, 60, 60)
		asks[1].N = 20
		p.recover(t)
		want("after it", sluice.Shared, -1, 50, 40, 40)
		if v, err := sluice.TakeAll(t.Context(), p.Store, nil); err != nil || !v.Allowed {
			t.Errorf("no asks: %+v, %v", v, err)
		}
	})
}

// Memory stays bounded under a flood of keys, and a key that was seen before it is still carried.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		take(t, p.Store, ask(slow, "victim", 100))
		for i := range 200_000 {
			take(t, p.Store, ask(slow, fmt.Sprint(i), 1))
		}
		p.trip(t, slow)
		if got := remaining(t, p.Store, ask(slow, "victim", 1)); got != 0 {
			t.Errorf("the victim has %d left, want 0", got)
		}
		if got := failover.Remembered(p.Store); got > 1<<16 {
			t.Errorf("%d keys are remembered, want at most 65536", got)
		}
	})
}

// Entries that say nothing any more make room.
func TestMemoryForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, st := newPair(t, failover.Options{}), bucket(1000, time.Second)
		for i := range 100_000 {
			take(t, p.Store, ask(st, fmt.Sprint(i), 1)) // as good as new 1 ms later
		}
		time.Sleep(time.Second)
		for i := range 100_000 {
			take(t, p.Store, ask(slow, fmt.Sprint(i), 1))
		}
		if got := failover.Remembered(p.Store); got < 50_000 || got > 1<<16 {
			t.Errorf("%d keys are remembered, want nearly 65536", got)
		}
	})
}

// An answer that comes late, from before the outage, does not undo what the fallback has taken over.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := failover.New(failover.Options{})
		defer b.Close()
		exact := local.New(local.Options{Clock: time.Now})
		release, held, off := make(chan struct{}), false, false
		s := b.Guard(sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
			if off {
				return sluice.Decision{}, errAway
			}
			d, err := exact.Take(ctx, a)
			if held {
				<-release
			}
			return d, err
		}), local.NewBuckets(local.BucketsOptions{Clock: time.Now}))
		take(t, s, ask(slow, "a", 10))
		held = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			take(t, s, ask(slow, "a", 1))
		}()
		synctest.Wait()
		held, off = false, true
		for range 6 {
			take(t, s, ask(slow, "a", 10)) // by the fallback: 30 left
		}
		close(release)
		<-done
		off = false
		time.Sleep(time.Second + 1)
		if got := take(t, s, ask(slow, "a", 1)).Remaining; got != 29 {
			t.Errorf("back in the primary: %d left, want 29", got)
		}
	})
}
