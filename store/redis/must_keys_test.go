package redis

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy"
)

// Random API keys are as many clients, each with its own burst and no more. A key takes what docs/operations.md says,
// has a TTL, and does not show the secret.
func TestMustLimitManyKeys(t *testing.T) {
	const clients, callers, burst = 20_000, 64, 2
	server := redistest.Start(t)
	s, err := Open("redis://"+server.Addr, Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	limiter := sluice.New(s, bucket(burst, time.Hour, burst), "api")

	random := rand.New(rand.NewPCG(31, 32))
	secrets, subjects := make([]string, clients), make([]string, clients)
	subject, r := policy.Header("X-API-Key"), httptest.NewRequest("GET", "/", nil)
	for i := range secrets {
		var b [24]byte
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		secrets[i] = base64.RawURLEncoding.EncodeToString(b[:])
		r.Header.Set("X-API-Key", secrets[i])
		subjects[i] = subject(r)
	}
	// each asks once for every client, and returns how many passed.
	each := func() (passed int64) {
		var sum atomic.Int64
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := c; i < clients; i += callers {
					d, err := limiter.Allow(ctx, subjects[i])
					if err != nil {
						t.Error(err)
						return
					}
					sum.Add(d.Charged)
				}
			})
		}
		wg.Wait()
		return sum.Load()
	}
	used := func() int64 {
		n, err := strconv.ParseInt(server.Info("memory")["used_memory"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	if _, err := limiter.Allow(ctx, "warm"); err != nil { // the script and the connections
		t.Fatal(err)
	}
	before := used()
	if n := each(); n != clients {
		t.Errorf("%d of %d clients pass at first", n, clients)
	}
	grown := (used() - before) / clients
	if n := each(); n != clients {
		t.Errorf("%d of %d clients pass a second time", n, clients)
	}
	if n := each(); n != 0 {
		t.Errorf("%d clients pass a third time, want none", n)
	}

	client := server.Client()
	if n := client.DBSize(ctx).Val(); n != clients+1 {
		t.Errorf("%d keys for %d clients", n, clients+1)
	}
	largest := int64(0)
	for i := 0; i < clients; i += clients / 1000 {
		key := s.key(sluice.Key{Rule: "api", Subject: subjects[i]}, "token_bucket")
		if strings.Contains(key, secrets[i]) {
			t.Fatalf("key %s holds the secret", key)
		}
		bytes, err := client.MemoryUsage(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, bytes)
		if ttl := client.PTTL(ctx, key).Val(); ttl <= 0 || ttl > time.Hour {
			t.Fatalf("key %s is kept for %v, want at most the hour in which its burst is regained", key, ttl)
		}
	}
	t.Logf("%d keys: MEMORY USAGE at most %d bytes, used_memory %d bytes a key", clients, largest, grown)
	if largest > 200 || grown > 300 {
		t.Errorf("a key takes %d bytes, and the server %d for each: want at most 200 and 300", largest, grown)
	}
}
