package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

// beat calls Heartbeat, which must answer n.
func beat(t *testing.T, s *redis.Store, group string, n int) {
	t.Helper()
	got, err := s.Heartbeat(t.Context(), group)
	if err != nil || got != n {
		t.Errorf("Heartbeat(%q) is %d, %v: want %d", group, got, err, n)
	}
}

// Instances of a group count each other, on every kind of client; others do not.
func TestHeartbeat(t *testing.T) {
	server := redistest.Shared(t)
	for name, client := range map[string]goredis.UniversalClient{
		"one":     server.Client(),
		"cluster": redistest.StartCluster(t, 3).Client(),
		"ring":    redistest.StartRing(t, 3).Client(),
		"acl": redistest.ACLUser(t, server, "resetkeys", "~acl*", "-@all", "+evalsha", "+eval", "+hello",
			"+time", "+zadd", "+zrem", "+zremrangebyscore", "+zcard", "+pexpire"),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := name + rand.Text()
			open := func() *redis.Store { return redis.New(client, redis.Options{Prefix: prefix, Timeout: 5 * time.Second}) }
			a, b, c := open(), open(), open()
			for _, group := range []string{"shop", "a}{b:c", "", strings.Repeat("long", 100)} {
				beat(t, a, group, 1)
				beat(t, a, group, 1)
				beat(t, b, group, 2)
			}
			beat(t, c, "other", 1)
			beat(t, a, "shop", 2)

			for range 2 {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
			beat(t, b, "shop", 1) // signed off
			if _, err := a.Heartbeat(t.Context(), "shop"); !errors.Is(err, sluice.ErrUnavailable) {
				t.Errorf("after Close: %v, want ErrUnavailable", err)
			}
		})
	}
}

// One small key a group, which goes by itself; a dead instance counts 10 s; it is one command.
func TestHeartbeatKey(t *testing.T) {
	server := redistest.Shared(t)
	client := server.Client()
	prefix := rand.Text()
	s := redis.New(client, redis.Options{Prefix: prefix, Timeout: 5 * time.Second})
	beat(t, s, "shop", 1)
	keys := client.Keys(t.Context(), prefix+"*").Val()
	if len(keys) != 1 || keys[0] != prefix+":{shop}:instances" {
		t.Fatalf("keys %q, want %s:{shop}:instances", keys, prefix)
	}
	if ttl := client.PTTL(t.Context(), keys[0]).Val(); ttl <= 9*time.Second || ttl > 10*time.Second {
		t.Errorf("lives for %v, want 10s", ttl)
	}
	now, err := client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, dead := range []goredis.Z{
		{Score: float64(now.Add(-11 * time.Second).UnixMilli()), Member: "long dead"},
		{Score: float64(now.Add(-8 * time.Second).UnixMilli()), Member: "just dead"},
	} {
		if err := client.ZAdd(t.Context(), keys[0], dead).Err(); err != nil {
			t.Fatal(err)
		}
	}
	beat(t, s, "shop", 2)
	calls := redistest.CallsOf(t, client, func() { beat(t, s, "shop", 2) })
	for name, n := range calls {
		if n != 1 {
			t.Errorf("%s was called %d times, want once", name, n)
		}
	}
	if calls["evalsha"] != 1 || calls["eval"] != 0 {
		t.Errorf("a beat is %v, want one EVALSHA", calls)
	}
}

// A beat ends by the store's timeout, and Close does not wait long for a server that hangs.
func TestHeartbeatHangs(t *testing.T) {
	server := redistest.Start(t)
	s := redis.New(server.Client(), redis.Options{Timeout: 50 * time.Millisecond})
	for try := 0; ; try++ { // the first loads the script
		if _, err := s.Heartbeat(t.Context(), "shop"); err == nil {
			break
		} else if try == 20 {
			t.Fatal(err)
		}
	}
	server.Stop()
	start := time.Now()
	_, err := s.Heartbeat(t.Context(), "shop")
	if took := time.Since(start); !errors.Is(err, sluice.ErrUnavailable) || took > time.Second {
		t.Errorf("a server that hangs: %v after %v, want ErrUnavailable after 50ms", err, took)
	}
	start = time.Now()
	if err := s.Close(); err != nil || time.Since(start) > time.Second {
		t.Errorf("Close: %v after %v, want nil after 50ms", err, time.Since(start))
	}
	server.Cont()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = redis.New(server.Client(), redis.Options{})
	if _, err := s.Heartbeat(ctx, "shop"); !errors.Is(err, context.Canceled) || errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("cancelled: %v, want context.Canceled alone", err)
	}
}

// What stands at the key is no group: an error, and no panic.
func TestHeartbeatWrongType(t *testing.T) {
	client := redistest.Shared(t).Client()
	s := redis.New(client, redis.Options{Prefix: "wrong", Timeout: 5 * time.Second})
	if err := client.Set(t.Context(), "wrong:{shop}:instances", "x", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Heartbeat(t.Context(), "shop"); !errors.Is(err, sluice.ErrState) {
		t.Errorf("a string in the key's place: %v, want ErrState", err)
	}
}
