package redis

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/storetest"
)

// Public fault reports about rate limiters on Redis, by their numbers in our list.

func bucket(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func fixed(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(fixedwindow.New(sluice.Limit{Count: count, Period: period}))
}

func sliding(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(slidingwindow.New(sluice.Limit{Count: count, Period: period}))
}

// A5: numbers such as 1000000000 reached integer commands as "1e9".
func TestCase_A5_RoundNumbers(t *testing.T) {
	ctx := context.Background()
	clock := new(storetest.Clock)
	clock.Set(time.UnixMicro(1_000_000_000_000_000)) // round times too
	s := testStore(t, clock.Now)
	client := redistest.Shared(t).Client()
	const count, period = 2_000_000_000, 1_000_000_000 * time.Millisecond
	for name, st := range map[string]sluice.Strategy{
		"token_bucket": bucket(count, period, count), "fixed_window": fixed(count, period), "sliding_window": sliding(count, period),
	} {
		l := sluice.New(s, st, name)
		for _, c := range []struct{ n, remaining int64 }{{100_000_000, 1_900_000_000}, {1_000_000_000, 900_000_000}} {
			d, err := l.AllowN(ctx, "k", c.n)
			if err != nil || !d.Allowed || d.Remaining != c.remaining {
				t.Errorf("%s: AllowN(%d): %+v, %v: want %d remaining", name, c.n, d, err, c.remaining)
			}
			pttl := client.PTTL(ctx, s.key(sluice.Key{Rule: name, Subject: "k"}, name)).Val()
			if want := d.ResetAfter + time.Minute; pttl > want || pttl < want-time.Minute {
				t.Errorf("%s: AllowN(%d): key is kept for %v: want %v", name, c.n, pttl, want)
			}
		}
	}
}

// B1: keys were left without an expiry.
func TestCase_B1_EveryKeyExpires(t *testing.T) {
	ctx := context.Background()
	client := redistest.Shared(t).Client()
	for _, first := range []int64{1, 3, 33} {
		s := testStore(t, nil)
		for name, st := range strategies(1000, time.Hour) {
			l := sluice.New(s, st, "r")
			if _, err := l.AllowN(ctx, "k", first); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if _, err := l.Allow(ctx, "k"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			k := s.key(sluice.Key{Rule: "r", Subject: "k"}, name)
			if pttl := client.PTTL(ctx, k).Val(); pttl <= 0 {
				t.Errorf("%s, first %d: PTTL %v", name, first, pttl)
			}
			client.Persist(ctx, k)
			if _, err := l.Allow(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			if pttl := client.PTTL(ctx, k).Val(); pttl <= 0 {
				t.Errorf("%s: a key without an expiry is not healed: PTTL %v", name, pttl)
			}
		}
	}
}

// B3: an expiry that was rounded down to 0 stored nothing, and so limited nothing.
func TestCase_B3_FastBucketsAreStored(t *testing.T) {
	ctx := context.Background()
	clock := new(storetest.Clock)
	s := testStore(t, clock.Now)
	for _, rate := range []int64{2, 3, 10, 1000, 1_000_000, 1_000_000_000} {
		l := sluice.New(s, bucket(rate, time.Second, 1), fmt.Sprint(rate))
		admitted := 0
		for range 5 {
			d, err := l.Allow(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted++
			}
		}
		if admitted != 1 {
			t.Errorf("%d/s burst 1: %d of 5 at one instant: want 1", rate, admitted)
		}
	}
}

// B3 too: a TTL is the time to full, rounded up to ms. On miniredis no time passes between the script and the look.
func TestCase_B3_TTLIsRoundedUp(t *testing.T) {
	ctx := context.Background()
	mini := miniredis.RunT(t)
	client := goredis.NewClient(&goredis.Options{Addr: mini.Addr()})
	defer client.Close()
	clock := new(storetest.Clock)
	s := New(client, Options{Timeout: 20 * time.Second, Clock: clock.Now})
	for _, period := range []time.Duration{time.Microsecond, 400 * time.Microsecond, time.Millisecond, 1500 * time.Microsecond, 3*time.Second + time.Microsecond} {
		for _, mode := range []sluice.Mode{sluice.Charge, sluice.UpTo} { // the lean script and the general one
			a := sluice.New(s, bucket(1, period, 1), period.String()).Ask(mode.String(), 1)
			a.Mode = mode
			if d, err := s.Take(ctx, a); err != nil || !d.Allowed || d.ResetAfter != period {
				t.Fatalf("%+v, %v", d, err)
			}
			want := (period + time.Millisecond - 1).Truncate(time.Millisecond) + time.Minute // the minute of a caller's clock
			if got := mini.TTL(s.key(a.Key, "token_bucket")); got != want {
				t.Errorf("1 per %v, %v: TTL %v: want %v", period, mode, got, want)
			}
		}
	}
}

// B5: a limit of zero failed every request with an error of the script.
func TestCase_B5_ZeroIsRefusedAtConstruction(t *testing.T) {
	for _, l := range []sluice.Limit{{Count: 0, Period: time.Second, Burst: 1}, {Count: 1, Period: 0, Burst: 1}, {Count: 1, Period: time.Second}} {
		if _, err := tokenbucket.New(l); err == nil {
			t.Errorf("%v: no error", l)
		}
	}
}

// B7: milliseconds were given to a command that counts seconds.
func TestCase_B7_TTLIsAboutAWindow(t *testing.T) {
	ctx := context.Background()
	client := redistest.Shared(t).Client()
	s := testStore(t, nil)
	for name, c := range map[string]struct {
		st   sluice.Strategy
		most time.Duration
	}{
		"fixed_window": {fixed(60, time.Minute), time.Minute}, "sliding_window": {sliding(60, time.Minute), 2 * time.Minute},
		"token_bucket": {bucket(60, time.Minute, 60), time.Second},
	} {
		if _, err := sluice.New(s, c.st, "r").Allow(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		if pttl := client.PTTL(ctx, s.key(sluice.Key{Rule: "r", Subject: "k"}, name)).Val(); pttl > c.most {
			t.Errorf("%s: PTTL %v: want at most %v", name, pttl, c.most)
		}
	}
}

// B9: a count leaked into the next minute.
func TestCase_B9_NewWindowStartsAtZero(t *testing.T) {
	ctx := context.Background()
	clock := new(storetest.Clock)
	l := sluice.New(testStore(t, clock.Now), fixed(5, time.Minute), "r")
	minute := time.Unix(1_800_000_000, 0)
	clock.Set(minute.Add(58_700 * time.Millisecond))
	for range 4 {
		if d, err := l.Allow(ctx, "k"); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	clock.Set(minute.Add(60_300 * time.Millisecond))
	for i := range int64(5) {
		if d, err := l.Allow(ctx, "k"); err != nil || !d.Allowed || d.Remaining != 4-i {
			t.Errorf("call %d of the next minute: %+v, %v", i, d, err)
		}
	}
}

// C9: a cost above 8000 broke a script that unpacked as many arguments.
func TestCase_C9_LargeCost(t *testing.T) {
	l := sluice.New(testStore(t, nil), sliding(20_000, time.Hour), "r")
	if d, err := l.AllowN(context.Background(), "k", 10_000); err != nil || !d.Allowed || d.Remaining != 10_000 {
		t.Errorf("%+v, %v: want 10000 remaining", d, err)
	}
}

// G5: a changed window kept the old expiry.
func TestCase_G5_EditedWindowExpires(t *testing.T) {
	ctx := context.Background()
	s := testStore(t, nil)
	l := sluice.New(s, fixed(5, time.Hour), "r")
	if _, err := l.Allow(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	d, err := l.With(fixed(5, time.Minute)).Allow(ctx, "k")
	pttl := redistest.Shared(t).Client().PTTL(ctx, s.key(sluice.Key{Rule: "r", Subject: "k"}, "fixed_window")).Val()
	if err != nil || d.ResetAfter > time.Minute || pttl > time.Minute || d.Remaining != 4 {
		t.Errorf("%+v, %v, PTTL %v: want at most a minute, and a fresh window", d, err, pttl)
	}
}

// H1: a script that the server had forgotten failed the call.
func TestCase_H1_ForgottenScript(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client()
	s := New(client, Options{Timeout: 20 * time.Second})
	l := sluice.New(s, fixed(100, 24*time.Hour), "r")
	batch := func() (sluice.Decision, error) {
		v, err := s.TakeAll(ctx, []sluice.Ask{l.Ask("k", 1), l.Ask("k", 1)})
		return v.Decision, err
	}
	one := func() (sluice.Decision, error) { return l.Allow(ctx, "k") }
	want := int64(100)
	for i, c := range []struct {
		take func() (sluice.Decision, error)
		n    int64
	}{{one, 1}, {batch, 2}, {one, 1}, {batch, 2}} {
		if err := client.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		want -= c.n
		if d, err := c.take(); err != nil || d.Remaining != want {
			t.Errorf("call %d after SCRIPT FLUSH: %+v, %v: want %d remaining", i, d, err, want)
		}
	}
	server.Restart()
	if d, err := l.Allow(ctx, "k"); err != nil || d.Remaining != 99 {
		t.Errorf("after a restart: %+v, %v: want a fresh count, charged once", d, err)
	}
}

// H3: several keys of one call lay on several slots.
func TestCase_H3_OneSlotASubject(t *testing.T) {
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 3).Client()
	s := New(cluster, Options{Timeout: 20 * time.Second})
	slots := map[int64]bool{}
	for i := range 200 {
		subject := fmt.Sprintf("user-%d", i)
		if odd := []string{"a{b}c", "{}", "}{", "{", "", "}", "{{a}}"}; i < len(odd) {
			subject = odd[i]
		}
		var asks []sluice.Ask
		for name, st := range strategies(10, time.Hour) {
			asks = append(asks, sluice.Ask{Strategy: st, Key: sluice.Key{Rule: name, Subject: subject}, N: 1})
		}
		if v, err := s.TakeAll(ctx, asks); err != nil || !v.Allowed {
			t.Fatalf("%q: %+v, %v", subject, v, err)
		}
		var slot int64 = -1
		for _, a := range asks {
			script, _ := a.Strategy.Lua()
			n, err := cluster.ClusterKeySlot(ctx, s.key(a.Key, script.Name)).Result()
			if err != nil || slot >= 0 && n != slot {
				t.Errorf("%q: slots %d and %d, %v", subject, slot, n, err)
			}
			slot = n
		}
		slots[slot] = true
	}
	if len(slots) < 150 {
		t.Errorf("200 subjects lie on %d slots", len(slots))
	}
}

// H7: Lua compared numbers as strings.
func TestCase_H7_NumbersAreCompared(t *testing.T) {
	ctx := context.Background()
	s := testStore(t, nil)
	for _, limit := range []int64{9, 10, 11, 99, 100, 101, 1000} {
		for name, st := range strategies(limit, 5000*24*time.Hour) {
			l := sluice.New(s, st, fmt.Sprint(limit))
			admitted := int64(0)
			for range limit + 3 {
				d, err := l.Allow(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				}
			}
			if admitted != limit {
				t.Errorf("%s of %d admits %d", name, limit, admitted)
			}
		}
	}
}

// TestExact lets many goroutines on several clients spend one key, with and without coalescing and known denials:
// exactly the limit passes.
func TestExact(t *testing.T) {
	ctx := context.Background()
	server := redistest.Shared(t)
	prefix := fmt.Sprintf("t%d", prefixes.Add(1))
	const clients, goroutines, calls, limit = 4, 64, 20, 1234
	for name, st := range strategies(limit, 5000*24*time.Hour) {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for i := range clients {
			s := New(server.Client(func(o *goredis.Options) { o.PoolTimeout = time.Minute }), Options{
				Prefix: prefix, Timeout: time.Minute, NoCoalescing: i&1 != 0, NoKnownDenials: i&2 != 0,
			})
			l := sluice.New(s, st, "r")
			for range goroutines {
				wg.Go(func() {
					for range calls {
						d, err := l.Allow(ctx, name)
						if err != nil {
							t.Error(err)
							return
						}
						admitted.Add(d.Charged)
					}
				})
			}
		}
		wg.Wait()
		if n := admitted.Load(); n != limit {
			t.Errorf("%s: %d of %d calls pass: want %d", name, n, clients*goroutines*calls, limit)
		}
	}
}

func TestOpen(t *testing.T) {
	ctx := context.Background()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := redistest.Start(t, "--requirepass", "hunter2", "--unixsocket", socket)
	cluster := redistest.StartCluster(t, 1)
	watched := redistest.StartSentinel(t, redistest.Start(t), "m")
	for _, url := range []string{
		"redis://:hunter2@" + server.Addr + "/0",
		"redis://:hunter2@" + server.Addr + "?pool_size=3",
		"unix://:hunter2@" + socket + "?db=1",
		"redis+cluster://" + cluster.Addrs()[0],
		"redis+sentinel://" + watched + "/0?master_name=m",
	} {
		s, err := Open(url, Options{Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := sluice.New(s, bucket(1, time.Hour, 1), "r").Allow(ctx, url); err != nil || !d.Allowed {
			t.Errorf("%s: %+v, %v", url, d, err)
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("%s: Close: %v", url, err)
			}
		}
		if _, err := sluice.New(s, bucket(1, time.Hour, 1), "r").Allow(ctx, "k"); !errors.Is(err, sluice.ErrUnavailable) {
			t.Errorf("%s: after Close: %v: want ErrUnavailable", url, err)
		}
	}
	for _, url := range []string{
		"", "localhost:6379", "http://:hunter2@localhost", "redis://:hunter2@localhost:port", "redis://:hunter2@localhost/x",
		"redis://localhost?pool_size=hunter2x", "redis+sentinel://:hunter2@localhost:26379", "redis+cluster://:hunter2@%zz",
		"redis://user:hunter2@ho st", "unix://", "redis://:hun%ter2@x",
	} {
		s, err := Open(url, Options{})
		if err == nil {
			_ = s.Close()
			if url != "unix://" {
				t.Errorf("%q: no error", url)
			}
		} else if strings.Contains(strings.ReplaceAll(err.Error(), "hunter2x", ""), "hunter2") || !strings.HasPrefix(err.Error(), "redis: ") {
			t.Errorf("%q: error %v", url, err)
		}
	}
	if _, err := Open("redis://localhost", Options{Prefix: "a{b"}); err == nil {
		t.Error("a brace in the prefix: no error")
	}
}
