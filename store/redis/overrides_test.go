package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

// an hour of the year 2030, where a test's clock stands.
var then = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func limitOf(count int64, period time.Duration, burst int64) sluice.Limit {
	return sluice.Limit{Count: count, Period: period, Burst: burst}
}

// listed is what Overrides returns, a line each; an error fails t.
func listed(t *testing.T, s *redis.Store) string {
	t.Helper()
	list, err := s.Overrides(t.Context())
	if err != nil || list == nil {
		t.Fatalf("Overrides: %v, %v: want a list", list, err)
	}
	var b strings.Builder
	for _, o := range list {
		fmt.Fprintf(&b, "%q %q %v %s\n", o.Rule, o.Subject, o.Limit, o.Until.Format(time.RFC3339))
	}
	return b.String()
}

// What one store sets, others of its prefix read, on every kind of client, with the rights that the docs name.
func TestOverrides(t *testing.T) {
	server := redistest.Shared(t)
	read := []string{"resetkeys", "~acl*", "-@all", "+evalsha", "+eval", "+hello", "+hgetall"}
	write := append(read, "+hmget", "+hset", "+hlen", "+hdel")
	cluster, ring := redistest.StartCluster(t, 3).Client(), redistest.StartRing(t, 3).Client()
	for name, clients := range map[string][2]goredis.UniversalClient{
		"one":     {server.Client(), server.Client()},
		"cluster": {cluster, cluster},
		"ring":    {ring, ring},
		"acl":     {redistest.ACLUser(t, server, write...), redistest.ACLUser(t, server, read...)},
	} {
		t.Run(name, func(t *testing.T) {
			o := redis.Options{Prefix: name + rand.Text(), Timeout: 5 * time.Second}
			a, b := redis.New(clients[0], o), redis.New(clients[1], o)
			if got := listed(t, b); got != "" {
				t.Errorf("at first: %s", got)
			}
			for _, o := range []redis.Override{
				{Rule: "api", Subject: "header:0a1b", Limit: limitOf(5000, 10*time.Second, 0)},
				{Rule: "api/b", Subject: "a b\x00%{}é\xff", Limit: limitOf(1, 36*time.Hour, 7), Until: then},
				{Rule: "api", Subject: "", Limit: limitOf(3, 1500*time.Microsecond, 3)},
				{Rule: "a b", Subject: "c", Limit: limitOf(1, time.Second, 0)},
				{Rule: "a", Subject: "b c", Limit: limitOf(2, time.Second, 0)},
				{Rule: "api", Subject: "header:0a1b", Limit: limitOf(9, 24*time.Hour, 0), Until: then}, // in place of the first
			} {
				if err := a.SetOverride(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			want := `"a" "b c" 2/s 0001-01-01T00:00:00Z
"a b" "c" 1/s 0001-01-01T00:00:00Z
"api" "" 3/1.5ms burst 3 0001-01-01T00:00:00Z
"api" "header:0a1b" 9/day 2030-01-01T00:00:00Z
"api/b" "a b\x00%{}é\xff" 1/36h0m0s burst 7 2030-01-01T00:00:00Z
`
			if got := listed(t, b); got != want {
				t.Errorf("list is\n%swant\n%s", got, want)
			}
			for _, c := range []struct {
				rule, subject string
				cleared       bool
			}{{"a", "b", false}, {"api", "header:0a1b", true}, {"api", "header:0a1b", false}, {"api/b", "a b\x00%{}é\xff", true}} {
				if cleared, err := a.ClearOverride(t.Context(), c.rule, c.subject); err != nil || cleared != c.cleared {
					t.Errorf("ClearOverride(%q, %q): %v, %v: want %v", c.rule, c.subject, cleared, err, c.cleared)
				}
			}
			if got := strings.Count(listed(t, b), "\n"); got != 3 {
				t.Errorf("%d are left, want 3", got)
			}
		})
	}
}

// They read well by hand, in one hash without a TTL, and are one command to read.
func TestOverridesKey(t *testing.T) {
	client := redistest.Shared(t).Client()
	prefix := rand.Text()
	s := redis.New(client, redis.Options{Prefix: prefix, Timeout: 5 * time.Second})
	o := redis.Override{Rule: "api", Subject: "ip:203.0.113.7", Limit: limitOf(5000, 10*time.Second, 5000), Until: then}
	if err := s.SetOverride(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	key := prefix + ":{overrides}"
	got := client.HGetAll(t.Context(), key).Val()
	if want := `map[api ip:203.0.113.7:{"limit":"5000/10s","burst":5000,"until":"2030-01-01T00:00:00Z"}]`; fmt.Sprint(got) != want {
		t.Errorf("the hash is %v, want %s", got, want)
	}
	if ttl := client.PTTL(t.Context(), key).Val(); ttl != -1 {
		t.Errorf("TTL %v, want none", ttl)
	}
	calls := redistest.CallsOf(t, client, func() { listed(t, s) })
	if len(calls) != 2 || calls["evalsha"] != 1 || calls["hgetall"] != 1 {
		t.Errorf("a read is %v, want one EVALSHA, and HGETALL in it", calls)
	}
}

// What can't be read is left out and named; what can be is good.
func TestOverridesMalformed(t *testing.T) {
	client := redistest.Shared(t).Client()
	prefix := rand.Text()
	key := prefix + ":{overrides}"
	s := redis.New(client, redis.Options{Prefix: prefix, Timeout: 5 * time.Second})
	for field, value := range map[string]string{
		"api":         `{"limit":"1/s"}`,                            // no subject
		"api %zz":     `{"limit":"1/s"}`,                            // no %XX
		"api %61":     `{"limit":"1/s"}`,                            // a, and a has another field
		" a":          `{"limit":"1/s"}`,                            // no rule
		"api text":    `1/s`,                                        // no JSON
		"api none":    `{}`,                                         // no limit
		"api limit":   `{"limit":"1.5/s"}`,                          // no whole number
		"api burst":   `{"limit":"1/s","burst":-1}`,                 // below 0
		"api until":   `{"limit":"1/s","until":"tomorrow"}`,         // no time
		"api long":    `{"limit":"1/s"}` + strings.Repeat(" ", 512), // too long
		"api null":    `null`,
		"api good":    `{"limit":"1/s"}`,
		"api newer":   `{"limit":"2/s","note":"by hand"}`,
		"api escaped": `{"limit":"3\/s"}`,
	} {
		if err := client.HSet(t.Context(), key, field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Overrides(t.Context())
	var got []string
	for _, o := range list {
		got = append(got, o.Subject+" "+o.Limit.String())
	}
	if want := "[escaped 3/s good 1/s newer 2/s]"; fmt.Sprint(got) != want {
		t.Errorf("list %v, want %s", got, want)
	}
	if !errors.Is(err, sluice.ErrState) || !strings.Contains(err.Error(), `field " a"`) || !strings.Contains(err.Error(), "and 6 more") {
		t.Errorf("error %v: want ErrState, the first five and how many more", err)
	}

	client.Del(t.Context(), key)
	client.Set(t.Context(), key, "x", time.Minute)
	if list, err := s.Overrides(t.Context()); list != nil || !errors.Is(err, sluice.ErrState) {
		t.Errorf("a string in the key's place: %v, %v: want ErrState and no list", list, err)
	}
	if err := s.SetOverride(t.Context(), redis.Override{Rule: "a", Limit: limitOf(1, time.Second, 0)}); !errors.Is(err, sluice.ErrState) {
		t.Errorf("the same for SetOverride: %v, want ErrState", err)
	}
}

// There are at most MaxOverrides; those that have ended make room, and no others.
func TestOverridesBound(t *testing.T) {
	client := redistest.Shared(t).Client()
	o := redis.Options{Prefix: rand.Text(), Timeout: 20 * time.Second}
	s := redis.New(client, o)
	set := func(subject string, until time.Time) error {
		return s.SetOverride(t.Context(), redis.Override{Rule: "api", Subject: subject, Limit: limitOf(1, time.Second, 0), Until: until})
	}
	for i := range redis.MaxOverrides {
		until := time.Time{}
		if i < 500 {
			until = time.Now().Add(time.Hour)
		}
		if err := set(fmt.Sprint(i), until); err != nil {
			t.Fatal(err)
		}
	}
	if err := set("one more", time.Time{}); err == nil || !strings.Contains(err.Error(), "1000 are set, the most") || errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("one more than the most: %v", err)
	}
	for _, ended := range []string{"0", "1", "999"} { // in place of others
		if err := set(ended, time.Now().Add(-time.Second)); err != nil {
			t.Error(err)
		}
	}
	if err := set("one more", time.Time{}); err != nil {
		t.Errorf("after some have ended: %v", err)
	}
	if n := strings.Count(listed(t, s), "\n"); n != redis.MaxOverrides-2 {
		t.Errorf("%d are set, want %d", n, redis.MaxOverrides-2)
	}

	for i := range 3 { // by hand, past the bound
		client.HSet(t.Context(), o.Prefix+":{overrides}", fmt.Sprintf("z %d", i), `{"limit":"1/s"}`)
	}
	list, err := s.Overrides(t.Context())
	if len(list) != redis.MaxOverrides || !errors.Is(err, sluice.ErrState) || !strings.Contains(err.Error(), "1001 entries") {
		t.Errorf("%d, %v: want the first 1000 and ErrState", len(list), err)
	}
}

func TestSetOverrideRefuses(t *testing.T) {
	s := redis.New(redistest.Shared(t).Client(), redis.Options{Prefix: rand.Text()})
	good := limitOf(1, time.Second, 0)
	for want, o := range map[string]redis.Override{
		"Rule is empty":         {Subject: "a", Limit: good},
		"Rule of 513 bytes":     {Rule: strings.Repeat("a", 513), Limit: good},
		"Subject of 513 bytes":  {Rule: "api", Subject: strings.Repeat("a", 513), Limit: good},
		"Count 0":               {Rule: "api", Limit: limitOf(0, time.Second, 0)},
		"Period 0s":             {Rule: "api", Limit: limitOf(1, 0, 0)},
		"Burst -1":              {Rule: "api", Limit: limitOf(1, time.Second, -1)},
		"Until in the year 999": {Rule: "api", Limit: good, Until: time.Date(999, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if err := s.SetOverride(t.Context(), o); err == nil || !strings.Contains(err.Error(), "redis: override: "+want) {
			t.Errorf("%v: want redis: override: %s", err, want)
		}
	}
}

// A server that hangs or has gone ends a call by the store's timeout.
func TestOverridesHang(t *testing.T) {
	server := redistest.Start(t)
	s := redis.New(server.Client(), redis.Options{Timeout: 50 * time.Millisecond})
	for try := 0; ; try++ { // the first loads the script
		if _, err := s.Overrides(t.Context()); err == nil {
			break
		} else if try == 20 {
			t.Fatal(err)
		}
	}
	server.Stop()
	start := time.Now()
	list, err := s.Overrides(t.Context())
	if took := time.Since(start); list != nil || !errors.Is(err, sluice.ErrUnavailable) || took > time.Second {
		t.Errorf("a server that hangs: %v, %v after %v, want ErrUnavailable after 50ms", list, err, took)
	}
	server.Cont()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Overrides(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("cancelled: %v, want context.Canceled alone", err)
	}
}
