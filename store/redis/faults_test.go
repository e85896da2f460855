package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
)

// TestCorruptWords puts words under a key that no Sluice wrote: ErrState in every mode, nothing written, other keys
// unharmed, and Reset heals.
func TestCorruptWords(t *testing.T) {
	s := testStore(t, nil)
	client := redistest.Shared(t).Client()
	ctx := context.Background()
	corrupt := []string{"nan", "-nan", "inf", "-inf", "0x10", "1.5", "", " 5", "5 ", "1e5", "+5", "9007199254740993", "-4503599627370497", "x", "٥", "-", "--1", "1\n"}
	for name, st := range strategies(10, time.Hour) {
		script, _ := st.Lua()
		l := sluice.New(s, st, "r")
		k := s.key(sluice.Key{Rule: "r", Subject: "k"}, name)
		check := func(what string) {
			t.Helper()
			before := client.HGetAll(ctx, k).Val()
			for mode := sluice.Charge; mode < sluice.Reset; mode++ {
				a := l.Ask("k", 1)
				a.Mode = mode
				if d, err := s.Take(ctx, a); !errors.Is(err, sluice.ErrState) || errors.Is(err, sluice.ErrUnavailable) || d != (sluice.Decision{}) {
					t.Errorf("%s, %s, %v: %+v, %v: want ErrState", name, what, mode, d, err)
				}
			}
			if _, err := sluice.TakeAll(ctx, s, []sluice.Ask{l.Ask("other", 1), l.Ask("k", 1)}); !errors.Is(err, sluice.ErrState) {
				t.Errorf("%s, %s, TakeAll: %v: want ErrState", name, what, err)
			}
			if after := client.HGetAll(ctx, k).Val(); fmt.Sprint(after) != fmt.Sprint(before) || client.PTTL(ctx, k).Val() != -1 {
				t.Errorf("%s, %s: wrote %v over %v", name, what, after, before)
			}
			if d, err := l.Peek(ctx, "other", 1); err != nil || d.Remaining != 10 {
				t.Errorf("%s, %s: another key: %+v, %v", name, what, d, err)
			}
		}
		for i, word := range script.Words {
			for _, bad := range corrupt {
				client.Del(ctx, k)
				client.HSet(ctx, k, script.Words[0], "1", script.Words[1], "1", script.Words[2], "1")
				client.HSet(ctx, k, word, bad)
				check(fmt.Sprintf("%s=%q", word, bad))
			}
			client.Del(ctx, k)
			client.HSet(ctx, k, script.Words[(i+1)%3], "1", script.Words[(i+2)%3], "1")
			check("no " + word)
		}
		if err := l.Reset(ctx, "k"); err != nil {
			t.Errorf("%s: Reset: %v", name, err)
		}
		if d, err := l.Allow(ctx, "k"); err != nil || d.Remaining != 9 {
			t.Errorf("%s: after Reset: %+v, %v: want a fresh state", name, d, err)
		}
	}
}

func TestWrongType(t *testing.T) {
	s := testStore(t, nil)
	client := redistest.Shared(t).Client()
	ctx := context.Background()
	l := sluice.New(s, strategies(10, time.Hour)["token_bucket"], "r")
	k := s.key(sluice.Key{Rule: "r", Subject: "k"}, "token_bucket")
	client.Set(ctx, k, "somebody's", 0)
	for mode := sluice.Charge; mode < sluice.Reset; mode++ {
		a := l.Ask("k", 1)
		a.Mode = mode
		if _, err := s.Take(ctx, a); !errors.Is(err, sluice.ErrState) || errors.Is(err, sluice.ErrUnavailable) {
			t.Errorf("%v: %v: want ErrState", mode, err)
		}
	}
	if got := client.Get(ctx, k).Val(); got != "somebody's" {
		t.Errorf("the foreign value is now %q", got)
	}
	if err := l.Reset(ctx, "k"); err != nil {
		t.Error(err)
	}
}

// replies is a client whose every reply is replaced.
func replies(t *testing.T, reply any) *Store {
	client := redistest.Shared(t).Client()
	client.AddHook(replaced{reply})
	return New(client, Options{Timeout: 20 * time.Second})
}

type replaced struct{ reply any }

func (replaced) DialHook(next goredis.DialHook) goredis.DialHook { return next }
func (replaced) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}
func (r replaced) ProcessHook(goredis.ProcessHook) goredis.ProcessHook {
	return func(_ context.Context, cmd goredis.Cmder) error {
		cmd.(once).SetVal(r.reply)
		return nil
	}
}

func TestForeignReplies(t *testing.T) {
	ctx := context.Background()
	st := strategies(10, time.Hour)["token_bucket"]
	for _, reply := range []any{
		nil, "OK", int64(1), 1.5, true, []any{}, []any{"1"}, []any{"1", "2", "1"}, map[any]any{"a": 1},
		[]any{"x", "2", "1", nil, nil, nil}, []any{"-1", "2", "1", nil, nil, nil}, []any{"1", "-2", "1", nil, nil, nil},
		[]any{"99999999999999999999", "2", "1", nil, nil, nil}, []any{nil, nil, nil, nil, nil, nil},
		[]any{"1", "2", "1", "1", nil, nil}, []any{"1", "2", "1", "nan", "1", "1"}, []any{"1", "2", []any{}, nil, nil, nil},
		[]any{"1", "2", "0", nil, nil, nil},           // Redis denied what Go allows
		[]any{"1", "2", "7", nil, nil, nil},           // and charged what nobody asked for
		[]any{"1", "2", "-1", "nan", nil, int64(3)},   // unusable words
		[]any{"1", "2", "5", "1", nil, nil, nil},      // a refusal by an ask that there is not
		[]any{"1", "2", "1", "0", "1", "1", "1", "1"}, // a refusal that Go does not see
	} {
		s := replies(t, reply)
		l := sluice.New(s, st, "r")
		if d, err := l.Allow(ctx, "k"); !errors.Is(err, sluice.ErrState) {
			t.Errorf("reply %v: %+v, %v: want ErrState", reply, d, err)
		}
		if v, err := s.TakeAll(ctx, []sluice.Ask{l.Ask("k", 1), l.Ask("k", 2)}); !errors.Is(err, sluice.ErrState) {
			t.Errorf("reply %v: %+v, %v: want ErrState", reply, v, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add("1795995028", "934453", "1", "0", "1000", "1795995028934453", "1000", uint8(0))
	f.Add("0", "0", "-1", "nan", "", "-0", "4503599627370496", uint8(3))
	asks := []sluice.Ask{
		{Strategy: strategies(10, time.Hour)["token_bucket"], N: 1},
		{Strategy: strategies(3, time.Second)["sliding_window"], N: 2, Mode: sluice.UpTo},
	}
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g, h string, missing uint8) {
		items := []any{a, b, c, d, e, g, h, e, g, h, d}
		for i := range items {
			if missing&(1<<(i%8)) != 0 {
				items[i] = nil
			}
		}
		script, _ := asks[0].Strategy.Lua()
		for n := range len(items) + 1 {
			got, _, err := readOne(&asks[0], script, items[:n])
			if err == nil && (got.Remaining < 0 || got.Remaining > got.Limit || got.RetryAfter < 0 || got.ResetAfter < 0) {
				t.Errorf("reply %q gives %+v", items[:n], got)
			}
			_, _ = readAny(asks, []string{"x", "y"}, items[:n])
		}
	})
}

// hurry is the longest that a call with a short deadline may take on a machine that is busy with other tests.
const hurry = 2 * time.Second

// TestHungServer freezes the server: each call ends at the store's timeout, the caller's deadline or its cancellation,
// whichever is first, through a client whose own timeouts are long; hanging commands are bounded; and all is well when
// the server runs on.
func TestHungServer(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(func(o *goredis.Options) {
		o.ReadTimeout, o.WriteTimeout, o.PoolSize = time.Minute, time.Minute, 4*maxAbandoned
	})
	s := New(client, Options{Timeout: 100 * time.Millisecond, NoCoalescing: true})
	l := sluice.New(s, strategies(1000, time.Hour)["token_bucket"], "r")
	ctx := context.Background()
	if _, err := l.Allow(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	start := time.Now()
	if _, err := l.Allow(ctx, "k"); !errors.Is(err, sluice.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("timeout: %v: want ErrUnavailable and DeadlineExceeded", err)
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	if _, err := l.Allow(short, "k"); !errors.Is(err, sluice.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v: want ErrUnavailable and DeadlineExceeded", err)
	}
	cancel()
	gone, cancel := context.WithCancel(ctx)
	time.AfterFunc(5*time.Millisecond, cancel)
	if _, err := l.Allow(gone, "k"); !errors.Is(err, context.Canceled) || errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("cancelled: %v: want context.Canceled alone", err)
	}
	if took := time.Since(start); took > hurry {
		t.Errorf("three calls took %v", took)
	}

	var wg sync.WaitGroup
	for range 2 * maxAbandoned {
		wg.Go(func() {
			if _, err := l.Allow(ctx, "k"); !errors.Is(err, sluice.ErrUnavailable) {
				t.Errorf("hung: %v: want ErrUnavailable", err)
			}
		})
	}
	wg.Wait()
	if n := s.abandoned.Load(); n < maxAbandoned {
		t.Fatalf("%d commands are left behind: want at least %d", n, maxAbandoned)
	}
	if _, err := l.Allow(ctx, "k"); !errors.Is(err, errAbandoned) {
		t.Errorf("with %d commands left behind: %v: want a refusal at once", s.abandoned.Load(), err)
	}

	server.Cont()
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := l.Allow(ctx, "other")
		if err == nil && s.abandoned.Load() == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the server runs on: %v, %d commands left behind", err, s.abandoned.Load())
		}
		time.Sleep(time.Millisecond) // polls a real server
	}
	// What the server had read before it froze was executed once each, and no more.
	d, err := l.Peek(ctx, "k", 0)
	if err != nil || d.Remaining < 1000-1-3-2*maxAbandoned {
		t.Errorf("%+v, %v: more was charged than was sent", d, err)
	}
}

// TestBackAtOnce has a server refuse connections more often than the pool has places: the first call after it is back
// is decided, and idle connections that broke meanwhile are not used.
func TestBackAtOnce(t *testing.T) {
	server := redistest.Start(t)
	s, err := Open("redis://"+server.Addr+"?pool_size=3", Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := sluice.New(s, strategies(10, time.Hour)["token_bucket"], "r")
	ctx := context.Background()
	for range 3 {
		if _, err := l.Allow(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		server.Kill()
		for range 10 {
			if _, err := l.Allow(ctx, "k"); !errors.Is(err, sluice.ErrUnavailable) {
				t.Fatalf("refused: %v: want ErrUnavailable", err)
			}
		}
		server.Restart()
		if d, err := l.Allow(ctx, "k"); err != nil || d.Remaining != 9 {
			t.Fatalf("back: %+v, %v: want a decision at once", d, err)
		}
		server.Restart() // breaks the connection that is idle in the pool
	}
}

// TestAtMostOnce loses the replies of a client that retries by default: the charge was made once.
func TestAtMostOnce(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	client := goredis.NewClient(&goredis.Options{Addr: proxy.Addr, ReadTimeout: 100 * time.Millisecond, MaxRetries: 3})
	defer client.Close()
	ctx := context.Background()
	// A warm pool of several connections: a retry on a cold one dies in the handshake, which hides the fault.
	proxy.Delay(20 * time.Millisecond)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { client.Ping(ctx) })
	}
	wg.Wait()
	proxy.Delay(0)
	if n := client.PoolStats().IdleConns; n < 4 {
		t.Fatalf("the pool has %d connections: want at least 4", n)
	}
	st := strategies(1000, 24*time.Hour)["token_bucket"]
	through, direct := New(client, Options{Timeout: 5 * time.Second}), New(server.Client(), Options{Timeout: 20 * time.Second})
	if _, err := sluice.New(through, st, "r").Allow(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	proxy.DropReplies(true)
	if _, err := sluice.New(through, st, "r").Allow(ctx, "k"); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("lost reply: %v: want ErrUnavailable", err)
	}
	d, err := sluice.New(direct, st, "r").Peek(ctx, "k", 0)
	if err != nil || d.Remaining != 998 {
		t.Errorf("%+v, %v: want 998 remaining, a lost reply charged once", d, err)
	}
}

// TestUnavailable makes a real server refuse in the ways it has: all are ErrUnavailable, none ErrState.
func TestUnavailable(t *testing.T) {
	ctx := context.Background()
	st := sluice.Must(tokenbucket.New(algorithm.Limit{Count: 10, Period: time.Hour, Burst: 10}))
	for name, client := range map[string]func(t *testing.T) *goredis.Client{
		"refused": func(t *testing.T) *goredis.Client {
			s := redistest.Start(t)
			c := s.Client()
			s.Kill()
			return c
		},
		"OOM": func(t *testing.T) *goredis.Client {
			return redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction").Client()
		},
		"READONLY": func(t *testing.T) *goredis.Client {
			master, replica := redistest.Start(t), redistest.Start(t)
			host, port, _ := strings.Cut(master.Addr, ":")
			c := replica.Client()
			if err := c.Do(ctx, "replicaof", host, port).Err(); err != nil {
				t.Fatal(err)
			}
			return c
		},
		"NOAUTH": func(t *testing.T) *goredis.Client {
			return redistest.Start(t, "--requirepass", "secret").Client()
		},
		"NOPERM": func(t *testing.T) *goredis.Client {
			return redistest.ACLUser(t, redistest.Start(t), "~*", "-@all", "+ping")
		},
		"CLUSTERDOWN": func(t *testing.T) *goredis.Client {
			s := redistest.Start(t, "--cluster-enabled", "yes") // owns no slots
			return s.Client()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(client(t), Options{Timeout: 5 * time.Second})
			d, err := sluice.New(s, st, "r").Allow(ctx, "k")
			if !errors.Is(err, sluice.ErrUnavailable) || errors.Is(err, sluice.ErrState) || d != (sluice.Decision{}) {
				t.Errorf("%+v, %v: want ErrUnavailable", d, err)
			}
			if name != "refused" && name == strings.ToUpper(name) && !strings.Contains(err.Error(), name) {
				t.Errorf("%v: want it to tell of %s", err, name)
			}
		})
	}
}
