package failover_test

import (
	"context"
	"crypto/rand"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

// onRedis is a guard of the Redis at an address, with keys of its own.
func onRedis(t *testing.T, addr string, o failover.Options, timeout time.Duration) (b *failover.Breaker, s sluice.Store, prefix string) {
	t.Helper()
	prefix = rand.Text()
	st, err := redis.Open("redis://"+addr, redis.Options{Prefix: prefix, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	b = failover.New(o)
	t.Cleanup(func() { _, _ = b.Close(), st.Close() })
	return b, b.Guard(st, local.NewBuckets(local.BucketsOptions{Share: b.Share})), prefix
}

// A lost reply is one charge in Redis, and the decision is the fallback's.
func TestCase_I1_LostReplyIsChargedOnce(t *testing.T) {
	server := redistest.Shared(t)
	proxy := redistest.StartProxy(t, server.Addr)
	_, s, prefix := onRedis(t, proxy.Addr, failover.Options{}, 200*time.Millisecond)
	direct := redis.New(server.Client(), redis.Options{Prefix: prefix, Timeout: 5 * time.Second})
	for range 5 { // warm: scripts and pool
		take(t, s, ask(slow, "warm", 1))
	}
	proxy.DropReplies(true)
	d := take(t, s, ask(slow, "a", 1))
	if !d.Allowed || d.Source != sluice.Local {
		t.Errorf("%+v, want the fallback's allowance", d)
	}
	if got := remaining(t, direct, ask(slow, "a", 1)); got != 99 {
		t.Errorf("Redis has %d left, want 99: charged once", got)
	}
	proxy.DropReplies(false)
	proxy.Reset()
	for try := 0; ; try++ {
		if d = take(t, s, ask(slow, "a", 1)); d.Source == sluice.Shared {
			break
		}
		if try == 100 {
			t.Fatal("Redis does not decide again")
		}
	}
	if got := remaining(t, direct, ask(slow, "a", 1)); got > 98 {
		t.Errorf("back in Redis: %d left, want at most 98", got)
	}
}

// p99 is the time that 99 of 100 calls, made by 1,000 callers at once, do not exceed.
func p99(call func()) time.Duration {
	const callers = 1000
	took := make([]time.Duration, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			start := time.Now()
			call()
			took[i] = time.Since(start)
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took[callers*99/100]
}

// A server that accepts and never answers: nobody waits longer than the store's timeout, and once the breaker is open
// nobody waits; no goroutine stays. Times are held against a floor of the same run, as many callers that only wait and
// take from bare buckets: at most 50 ms above it while Redis hangs, and 5 ms once open. A machine that stalls may spoil
// a try; a fault spoils each.
func TestCase_I3_BlackHole(t *testing.T) {
	const timeout = 100 * time.Millisecond
	proxy := redistest.StartProxy(t, redistest.Shared(t).Addr)
	base := runtime.NumGoroutine()
	for try := 1; ; try++ {
		proxy.BlackHole(false)
		proxy.Reset()
		b, s, _ := onRedis(t, proxy.Addr, failover.Options{OpenFor: time.Hour}, timeout)
		take(t, s, ask(slow, "warm", 1))
		proxy.BlackHole(true)

		bare := local.NewBuckets(local.BucketsOptions{})
		decide := func(s sluice.Store) {
			if d, err := s.Take(t.Context(), ask(slow, "a", 1)); err != nil || d.Source != sluice.Local {
				t.Errorf("%+v, %v; want the fallback's decision", d, err)
			}
		}
		floor := p99(func() { time.Sleep(timeout); decide(bare) })
		hung := p99(func() { decide(s) })
		state(t, b, failover.Open)
		floorOpen := p99(func() { decide(bare) })
		open := p99(func() { decide(s) })
		t.Logf("1000 callers, p99: hung %v, floor %v; open %v, floor %v", hung, floor, open, floorOpen)
		if raceEnabled || hung <= floor+50*time.Millisecond && open <= floorOpen+5*time.Millisecond {
			break
		}
		if try == 3 {
			t.Errorf("hung: want at most 50ms above the floor, open: at most 5ms")
			break
		}
	}
	proxy.Close() // its connections have goroutines, too
	for give := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > base+4; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), base)
		}
	}
}

// Redis away and back, stalled and on: it decides again within OpenFor and a probe, and the key is carried both ways.
func TestRedisComesBack(t *testing.T) {
	server := redistest.Start(t)
	b, s, _ := onRedis(t, server.Addr, failover.Options{OpenFor: 100 * time.Millisecond}, 100*time.Millisecond)
	until := func(want sluice.Source, within time.Duration) (n int64) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(2 * time.Millisecond) {
			d := take(t, s, ask(slow, "a", 1))
			if n += d.Charged; d.Source == want {
				return n
			}
			if time.Since(start) > within {
				t.Fatalf("%v still, %v later; want %v", d.Source, within, want)
			}
		}
	}
	spent := until(sluice.Shared, time.Second)
	server.Stop()
	spent += until(sluice.Local, time.Second)
	for b.State() != failover.Open {
		spent += take(t, s, ask(slow, "a", 1)).Charged
	}
	server.Cont()
	spent += until(sluice.Shared, time.Second)
	left := remaining(t, s, ask(slow, "a", 1))
	t.Logf("%d admitted, %d left of 100", spent, left)
	if left > 100-spent {
		t.Errorf("%d admitted and %d left, of 100", spent, left)
	}
	server.Kill()
	until(sluice.Local, time.Second)
	for b.State() != failover.Open {
		take(t, s, ask(slow, "a", 1))
	}
	before := take(t, s, ask(slow, "a", 1)).Remaining
	server.Restart() // empty
	until(sluice.Shared, 2*time.Second)
	if got := remaining(t, s, ask(slow, "a", 1)); got > before {
		t.Errorf("a Redis that comes back empty has %d left, want at most %d", got, before)
	}
}

// The heartbeat of the Redis store is what Options.Heartbeat asks for.
func TestHeartbeatOfRedis(t *testing.T) {
	server, prefix := redistest.Shared(t), rand.Text()
	beat := func() *failover.Breaker {
		s := redis.New(server.Client(), redis.Options{Prefix: prefix, Timeout: 5 * time.Second})
		b := failover.New(failover.Options{Heartbeat: func(ctx context.Context) (int, error) { return s.Heartbeat(ctx, "shop") }})
		t.Cleanup(func() { _, _ = b.Close(), s.Close() })
		return b
	}
	one, two := beat(), beat()
	for give := time.Now().Add(10 * time.Second); one.Share() != 0.5 || two.Share() != 0.5; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("shares %v and %v, want 0.5", one.Share(), two.Share())
		}
	}
}
