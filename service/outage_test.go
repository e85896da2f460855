package service_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

// outages is a rule file of three rules that differ in on_outage, each 3 a day.
func outages(redis, more string) string {
	text := fmt.Sprintf("store: {redis: '%s', timeout: 200ms}\nfailover: {open_for: 50ms, instances: 1}\n%s\nrules:\n", redis, more)
	for _, on := range []string{"local", "allow", "deny"} {
		text += fmt.Sprintf("  - {name: %s, match: /%[1]s, on_outage: %[1]s, limits: [{algorithm: fixed_window, limit: 3/day, subject: ip}]}\n", on)
	}
	return text
}

// sources is where the decisions of each rule came from.
type sources struct {
	mu   sync.Mutex
	last map[string]sluice.Source
}

func (s *sources) Observe(_ context.Context, a sluice.Ask, d sluice.Decision, _ error, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]sluice.Source{}
	}
	s.last[a.Key.Rule] = d.Source
}

func (s *sources) of(rule string) sluice.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[rule]
}

// statuses is what n requests are answered.
func statuses(s *service.Service, target string, n int) string {
	var all []string
	for range n {
		all = append(all, fmt.Sprint(get(s, target).StatusCode))
	}
	return strings.Join(all, " ")
}

// Redis absent at the start is Redis absent later: the process serves, as each rule's on_outage says; the log says so
// once, without the password.
func TestRedisAway(t *testing.T) {
	t.Setenv("SLUICE_TEST_REDIS", "redis://:hunter2@127.0.0.1:1/0")
	var log quiet
	var seen sources
	s := open(t, write(t, "", strings.Replace(outages("env:SLUICE_TEST_REDIS", ""), "50ms", "1h", 1)), service.Options{Logger: log.logger(), Observer: &seen})
	for rule, want := range map[string]string{"local": "200 200 200 429 429", "allow": "200 200 200 200 200", "deny": "429 429 429 429 429"} {
		if got := statuses(s, "/"+rule, 5); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
	if seen.of("local") != sluice.Local || seen.of("allow") != sluice.Assumed || seen.of("deny") != sluice.Assumed {
		t.Errorf("sources %v, want local, assumed, assumed", seen.last)
	}
	if n := strings.Count(log.String(), "to=open"); n != 1 || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%d lines about the breaker, want one, and no error:\n%s", n, &log)
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log holds the password:\n%s", &log)
	}
}

// An outage is answered by policy: the handler is reached or the rule denies; it is never a server error.
func TestCase_J7_OutageIsNoServerError(t *testing.T) {
	server := redistest.Start(t)
	for name, fault := range map[string]func(*redistest.Proxy){
		"refused":     func(p *redistest.Proxy) { p.Refuse(true); p.Reset() },
		"reset":       func(p *redistest.Proxy) { p.CutReplies(0) },
		"half":        func(p *redistest.Proxy) { p.CutReplies(7) },
		"timeout":     func(p *redistest.Proxy) { p.BlackHole(true) },
		"lost answer": func(p *redistest.Proxy) { p.DropReplies(true) },
	} {
		t.Run(name, func(t *testing.T) {
			proxy := redistest.StartProxy(t, server.Addr)
			s := open(t, write(t, "", outages("redis://"+proxy.Addr, "")), service.Options{})
			get(s, "/local")
			fault(proxy)
			for range 10 {
				for _, rule := range []string{"local", "allow", "deny"} {
					if code := get(s, "/"+rule).StatusCode; code != http.StatusOK && code != http.StatusTooManyRequests {
						t.Fatalf("%s: status %d", rule, code)
					}
				}
			}
		})
	}
}

// Redis decides again within open_for and one probe, without a restart.
func TestRedisBack(t *testing.T) {
	server := redistest.Start(t)
	var log quiet
	var seen sources
	s := open(t, write(t, "", outages("redis://"+server.Addr, "")), service.Options{Logger: log.logger(), Observer: &seen})
	until := func(want sluice.Source) {
		t.Helper()
		for give := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			get(s, "/local")
			if seen.of("local") == want {
				return
			}
			if time.Now().After(give) {
				t.Fatalf("still %v, want %v\n%s", seen.of("local"), want, &log)
			}
		}
	}
	until(sluice.Shared)
	server.Kill()
	until(sluice.Local)
	for range 10 {
		get(s, "/local")
	}
	server.Restart()
	until(sluice.Shared)
	for _, want := range []string{"from=closed to=open", "from=half-open to=closed"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
}

// mode: local leaves Redis alone; what was spent before counts, and what was spent meanwhile counts afterwards.
func TestModeLocal(t *testing.T) {
	server := redistest.Start(t)
	var seen sources
	path := write(t, "", outages("redis://"+server.Addr, ""))
	s := open(t, path, service.Options{Observer: &seen})
	get(s, "/local") // the first connects and loads the script
	if seen.of("local") != sluice.Shared {
		t.Fatalf("source %v, want shared", seen.of("local"))
	}
	reload := func(mode string) {
		t.Helper()
		write(t, path, outages("redis://"+server.Addr, mode))
		if err := s.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reload("mode: local")
	calls := redistest.CallsOf(t, server.Client(), func() {
		if got, want := statuses(s, "/local", 3), "200 200 429"; got != want {
			t.Errorf("3 a day with 1 spent in Redis: %s, want %s", got, want)
		}
		if got, want := statuses(s, "/deny", 4), "200 200 200 429"; got != want {
			t.Errorf("a rule that denies in an outage: %s, want %s", got, want)
		}
	})
	if len(calls) != 0 || seen.of("local") != sluice.Local {
		t.Errorf("source %v, calls to Redis %v: want local and none", seen.of("local"), calls)
	}
	reload("mode: enforce")
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if code := get(s, "/local").StatusCode; code != 429 {
			t.Fatalf("back in Redis: status %d, want 429: 3 of 3 are spent", code)
		}
		if seen.of("local") != sluice.Local {
			break
		}
		if time.Now().After(give) {
			t.Fatal("Redis does not decide again")
		}
	}
}

// The breaker is made once.
func TestReloadFailover(t *testing.T) {
	path := write(t, "", outages("redis://127.0.0.1:1", ""))
	s := open(t, path, service.Options{})
	write(t, path, strings.Replace(outages("redis://127.0.0.1:1", ""), "50ms", "60ms", 1))
	if err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "restart to change failover") {
		t.Errorf("reload with another failover section: %v", err)
	}
}

// Instances of one group count each other by heartbeat, under the file's group or else its prefix.
func TestInstances(t *testing.T) {
	server := redistest.Start(t)
	for _, c := range []struct{ failover, key string }{
		{"", "sluice:{sluice}:instances"},
		{"failover: {group: shop}\n", "sluice:{shop}:instances"},
		{"failover: {instances: 3}\n", ""},
	} {
		server.Flush()
		path := write(t, "", fmt.Sprintf("store: {redis: 'redis://%s', timeout: 5s}\n%s", server.Addr, c.failover)+rules(5))
		one, two := open(t, path, service.Options{}), open(t, path, service.Options{})
		client, want := server.Client(), int64(2)
		if c.key == "" {
			want = 0
		}
		for give := time.Now().Add(10 * time.Second); c.key != "" && client.ZCard(t.Context(), c.key).Val() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(give) {
				t.Fatalf("%s has %d members, want %d", c.key, client.ZCard(t.Context(), c.key).Val(), want)
			}
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		if keys := client.Keys(t.Context(), "*instances").Val(); len(keys) != 0 {
			t.Errorf("%q: after Close there are %q, want none: both signed off", c.failover, keys)
		}
	}
}

// breaker waits until the breaker is in a state, without a request.
func breaker(t *testing.T, s *service.Service, want failover.State) {
	t.Helper()
	for give := time.Now().Add(20 * time.Second); s.Process().Breaker() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("the breaker is %v, want %v", s.Process().Breaker(), want)
		}
	}
}

// An outage under requests, and then none: once Redis is back, the process sees it by itself.
func TestRedisBackWithoutRequests(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, write(t, "", outages("redis://"+server.Addr, "")), service.Options{}.Quickly())
	server.Kill()
	statuses(s, "/local", 10)
	if got := s.Process().Breaker(); got == failover.Closed {
		t.Fatal("ten requests without Redis leave the breaker closed")
	}
	server.Restart()
	breaker(t, s, failover.Closed)
}

// A Redis that answers reads and refuses writes is not back, and the breaker does not close until it takes them; for a user
// who may not read overrides, neither later nor sooner.
func TestRedisRefusesWritesWithoutRequests(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	memory := func(most string) {
		t.Helper()
		if err := admin.ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rights := []string{"~sluice:*", "+evalsha", "+eval", "+time", "+hmget", "+hset", "+pexpire", "+del", "+hello"}
	for name, client := range map[string]*goredis.Client{
		"all rights": admin, "no overrides": redistest.ACLUser(t, server, rights...),
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			closed, probes := 0, 0
			s := open(t, write(t, "", outages("redis://"+server.Addr, "")), service.Options{Client: client, OnBreaker: func(_, to failover.State) {
				mu.Lock()
				defer mu.Unlock()
				switch to {
				case failover.Closed:
					closed++
				case failover.HalfOpen:
					probes++
				}
			}}.Quickly())
			count := func() (int, int) {
				mu.Lock()
				defer mu.Unlock()
				return closed, probes
			}
			get(s, "/local")
			memory("1")
			statuses(s, "/local", 10)
			for give := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
				s.Process().Breaker()
				closed, probes := count()
				if closed != 0 {
					t.Fatal("the breaker has closed on a Redis that is out of memory")
				}
				if probes == 5 {
					break
				}
				if time.Now().After(give) {
					t.Fatalf("%d probes, want 5: %s", probes, s.Status().OverridesError)
				}
			}
			memory("0")
			breaker(t, s, failover.Closed)
		})
	}
}

// outOfMemory opens the breaker by requests to a Redis without memory, which has some again at the return.
func outOfMemory(t *testing.T, s *service.Service, server *redistest.Server, path string) {
	t.Helper()
	for _, most := range []string{"1", "0"} {
		if err := server.Client().ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
		if most == "1" {
			statuses(s, path, 10)
			if got := s.Process().Breaker(); got == failover.Closed {
				t.Fatal("ten requests without memory in Redis leave the breaker closed")
			}
		}
	}
}

// A key of another type in the overrides' place is an answer of Redis, too.
func TestRedisBackWithoutOverrides(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, write(t, "", outages("redis://"+server.Addr, "")), service.Options{}.Quickly())
	if err := server.Client().Set(t.Context(), "sluice:{overrides}", "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	outOfMemory(t, s, server, "/local")
	breaker(t, s, failover.Closed)
	if got := s.Status().OverridesError; !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("the overrides' error is %q, want WRONGTYPE", got)
	}
}

// An OnBreaker that does not return keeps no override from being followed, and Close waits for it no longer than it may.
func TestOnBreakerHangs(t *testing.T) {
	server := redistest.Start(t)
	told, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	path := write(t, "", strings.Replace(overridable(server, ""), "1h", "50ms", 1))
	s := open(t, path, service.Options{OnBreaker: func(_, to failover.State) {
		if to == failover.Closed {
			close(told)
			<-release
		}
	}}.Quickly().Closing(20*time.Millisecond))
	outOfMemory(t, s, server, "/two")
	soon(t, "the breaker's closing", func() { <-told })
	set(t, direct(t, s), overrideOf(t, s, "acme", 6, time.Time{}))
	known(t, s, 1)
	soon(t, "Close", func() {
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "has not ended after 20ms") {
			t.Errorf("Close: %v, want that a goroutine has not ended", err)
		}
	})
}
