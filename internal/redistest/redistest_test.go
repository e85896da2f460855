package redistest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var ctx = context.Background()

// once makes a client that fails fast: one try, short timeouts.
func once(o *goredis.Options) {
	o.MaxRetries, o.DialerRetries = -1, 1
	o.ReadTimeout, o.DialTimeout = 200*time.Millisecond, 200*time.Millisecond
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", what)
	}
}

func TestServerStopsAndComesBackEmpty(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "100mb")
	c := s.Client(once)
	ok(t, c.Set(ctx, "a", "1", 0).Err())
	if v := s.Version(); !strings.Contains(v, ".") {
		t.Errorf("Version() = %q", v)
	}
	if got := s.Info("memory")["maxmemory"]; got != "104857600" {
		t.Errorf("maxmemory is %q: the extra arguments did not arrive", got)
	}

	s.Stop()
	fails(t, "a stopped server", c.Get(ctx, "a").Err())
	s.Cont()
	if v := c.Get(ctx, "a").Val(); v != "1" {
		t.Errorf("after Cont: %q", v)
	}

	s.Kill()
	fails(t, "a killed server", c.Get(ctx, "a").Err())
	s.Restart()
	if n := c.DBSize(ctx).Val(); n != 0 {
		t.Errorf("after Restart: %d keys", n)
	}
	ok(t, c.Set(ctx, "a", "1", 0).Err())
	s.Flush()
	if n := c.DBSize(ctx).Val(); n != 0 {
		t.Errorf("after Flush: %d keys", n)
	}
}

func TestServerLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var addr string
	t.Run("inner", func(t *testing.T) {
		s := redistest.Start(t)
		addr = s.Addr
		ok(t, s.Client().Ping(ctx).Err())
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction(child.Goroutine),
			goleak.IgnoreAnyFunction("testing.(*T).Run"))
	})
	goleak.VerifyNone(t, before)
	c := goredis.NewClient(&goredis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	fails(t, "a server after its test", c.Ping(ctx).Err())
}

func TestShared(t *testing.T) {
	a, b := redistest.Shared(t), redistest.Shared(t)
	if a.Addr != b.Addr {
		t.Errorf("two servers: %s and %s", a.Addr, b.Addr)
	}
	ok(t, a.Client().Ping(ctx).Err())
}

func TestCluster(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		c := redistest.StartCluster(t, nodes)
		client := c.Client()
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			ok(t, client.Set(ctx, key, key, 0).Err())
		}
		if n := redistest.Calls(t, client)["set"]; n != 7 {
			t.Errorf("%d nodes: %d calls of SET, want 7", nodes, n)
		}
		if len(c.Addrs()) != nodes {
			t.Errorf("Addrs() = %v", c.Addrs())
		}
		if nodes == 3 {
			err := client.MSet(ctx, "a", 1, "b", 2).Err()
			if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
				t.Errorf("two slots in one command: %v, want CROSSSLOT", err)
			}
		}
	}
}

func TestRing(t *testing.T) {
	r := redistest.StartRing(t, 2)
	client := r.Client()
	calls := redistest.CallsOf(t, client, func() {
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			ok(t, client.Set(ctx, key, key, 0).Err())
		}
	})
	if calls["set"] != 10 {
		t.Errorf("calls %v, want 10 of SET", calls)
	}
	for _, s := range r.Servers {
		if s.Client().DBSize(ctx).Val() == 0 {
			t.Errorf("no key on %s", s.Addr)
		}
	}
}

func TestACLUser(t *testing.T) {
	s := redistest.Shared(t)
	c := redistest.ACLUser(t, s, "~mine:*", "+get", "+set")
	ok(t, c.Set(ctx, "mine:a", "1", 0).Err())
	for what, err := range map[string]error{
		"another key":     c.Set(ctx, "yours:a", "1", 0).Err(),
		"another command": c.Del(ctx, "mine:a").Err(),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v, want NOPERM", what, err)
		}
	}
}

func TestCallsOfCountsCommandsInScripts(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	calls := redistest.CallsOf(t, c, func() {
		ok(t, c.Eval(ctx, "redis.call('hset', KEYS[1], 'a', 1) return redis.call('hget', KEYS[1], 'a')", []string{"k"}).Err())
		ok(t, c.Set(ctx, "other", 1, 0).Err())
	})
	want := map[string]int64{"eval": 1, "hset": 1, "hget": 1, "set": 1}
	if len(calls) != len(want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
	for name, n := range want {
		if calls[name] != n {
			t.Errorf("calls %v, want %v", calls, want)
		}
	}
}
