package redis_test

import (
	"crypto/rand"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

// inspected is a store under a prefix of its own, and an ask of 10 a minute with a burst of 10.
func inspected(t *testing.T, client goredis.UniversalClient) (*redis.Store, sluice.Ask, string) {
	t.Helper()
	prefix := "inspect" + rand.Text()
	s := redis.New(client, redis.Options{Prefix: prefix, Timeout: 5 * time.Second})
	t.Cleanup(func() { _ = s.Close() })
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 10, Period: time.Minute, Burst: 10}))
	return s, sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "login", Subject: "192.0.2.1"}, N: 1}, prefix
}

// What a charge leaves is shown as it stands, in one round trip, and nothing is changed by that.
func TestInspect(t *testing.T) {
	server := redistest.Shared(t)
	for name, client := range map[string]goredis.UniversalClient{
		"one":     server.Client(),
		"cluster": redistest.StartCluster(t, 3).Client(),
		"ring":    redistest.StartRing(t, 3).Client(),
	} {
		t.Run(name, func(t *testing.T) {
			s, ask, prefix := inspected(t, client)
			e, err := s.Inspect(t.Context(), ask)
			if err != nil || len(e.Words) != 0 || e.TTL != 0 || !e.Decision.Allowed || e.Decision.Remaining != 10 {
				t.Errorf("never seen: %+v, %v", e, err)
			}
			if want := prefix + ":{192.0.2.1}:login:token_bucket"; e.Key != want || s.KeyOf(ask) != want {
				t.Errorf("key %q, KeyOf %q, want %q", e.Key, s.KeyOf(ask), want)
			}
			charge := ask
			charge.N = 4
			if _, err := s.Take(t.Context(), charge); err != nil {
				t.Fatal(err)
			}
			want := client.HGetAll(t.Context(), e.Key).Val()
			for range 2 {
				e, err = s.Inspect(t.Context(), ask)
				if err != nil || !maps.Equal(e.Words, want) || e.Decision.Charged != 0 || e.Decision.Remaining != 6 {
					t.Errorf("after a charge of 4: %+v, %v, want the words %v", e, err, want)
				}
				if ms := e.Decision.ResetAfter.Milliseconds(); e.TTL <= 0 || e.TTL.Milliseconds() < ms || e.TTL.Milliseconds() > ms+1000 {
					t.Errorf("TTL %v, full after %v", e.TTL, e.Decision.ResetAfter)
				}
			}
			if err := client.Persist(t.Context(), e.Key).Err(); err != nil {
				t.Fatal(err)
			}
			if e, err = s.Inspect(t.Context(), ask); err != nil || e.TTL != redis.NoTTL {
				t.Errorf("persisted: TTL %v, %v, want NoTTL", e.TTL, err)
			}
			ask.N = 20
			if e, err = s.Inspect(t.Context(), ask); err != nil || e.Decision.Allowed || e.Decision.RetryAfter != sluice.Never {
				t.Errorf("20 of 10: %+v, %v, want a denial for ever", e.Decision, err)
			}
		})
	}
}

func TestInspectIsOneCall(t *testing.T) {
	client := redistest.Start(t).Client()
	s, ask, _ := inspected(t, client)
	look := func() {
		if _, err := s.Inspect(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	look() // the script becomes known
	calls := redistest.CallsOf(t, client, look)
	if calls["evalsha"] != 1 || calls["eval"] != 0 || calls["hset"]+calls["pexpire"]+calls["del"] != 0 {
		t.Errorf("calls %v, want one EVALSHA and no write", calls)
	}
}

// Damaged words are shown, with ErrState; what is no hash gives ErrState alone.
func TestInspectDamaged(t *testing.T) {
	client := redistest.Shared(t).Client()
	s, ask, _ := inspected(t, client)
	key := s.KeyOf(ask)
	if err := client.HSet(t.Context(), key, "spent", "1e9", "ts", "5").Err(); err != nil {
		t.Fatal(err)
	}
	e, err := s.Inspect(t.Context(), ask)
	if !errors.Is(err, sluice.ErrState) || !maps.Equal(e.Words, map[string]string{"spent": "1e9", "ts": "5"}) {
		t.Errorf("%v, %v, want ErrState and the two words", e.Words, err)
	}
	client.Del(t.Context(), key)
	client.Set(t.Context(), key, "x", time.Minute)
	if _, err = s.Inspect(t.Context(), ask); !errors.Is(err, sluice.ErrState) {
		t.Errorf("a string: %v, want ErrState", err)
	}
	if _, err = s.Inspect(t.Context(), sluice.Ask{Key: ask.Key}); err == nil {
		t.Error("no strategy: no error")
	}
}

// The rights of a store are enough; the TTL needs one more.
func TestInspectRights(t *testing.T) {
	server := redistest.Start(t)
	rights := []string{"~inspect*", "+evalsha", "+eval", "+time", "+hmget", "+hset", "+pexpire", "+del", "+hello"}
	s, ask, _ := inspected(t, redistest.ACLUser(t, server, rights...))
	if _, err := s.Take(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	e, err := s.Inspect(t.Context(), ask)
	if err != nil || e.TTL != 0 || e.Decision.Remaining != 9 {
		t.Errorf("without PTTL: %+v, %v", e, err)
	}
	s, ask, _ = inspected(t, redistest.ACLUser(t, server, append(rights, "+pttl")...))
	if _, err := s.Take(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	if e, err = s.Inspect(t.Context(), ask); err != nil || e.TTL <= 0 {
		t.Errorf("with PTTL: %+v, %v", e, err)
	}
}

func TestClientHidesTheURL(t *testing.T) {
	client, err := redis.Client("redis://"+redistest.Shared(t).Addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if _, err := redis.Client("redis://user:hunter2@host:port", 0); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v, want an error without the password", err)
	}
}
