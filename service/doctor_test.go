package service_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
)

// everything has a rule of each algorithm, on a Redis.
func everything(t *testing.T, redis string, edit ...func(*policy.Config)) *policy.Rules {
	t.Helper()
	c := policy.Config{Store: policy.StoreConfig{Redis: redis}}
	for _, name := range policy.Algorithms() {
		l := algorithm.Limit{Count: 100, Period: time.Minute}
		if policy.HasBurst(name) {
			l.Burst = 100
		}
		c.Rules = append(c.Rules, policy.RuleConfig{Name: name, Match: "/" + name, Limits: []policy.LimitConfig{{Algorithm: name, Limit: l, Subject: "ip"}}})
	}
	for _, f := range edit {
		f(&c)
	}
	rules, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// findings are what a doctor finds, by check.
type findings map[string]service.Finding

func diagnose(t *testing.T, rules *policy.Rules) findings {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found := findings{}
	service.Diagnose(ctx, rules, func(f service.Finding) {
		if _, twice := found[f.Check]; twice || f.Found == "" || (f.Advice == "") != (f.Health == service.HealthOK) {
			t.Errorf("finding %+v: want one a check, and advice where something is wrong", f)
		}
		found[f.Check] = f
	})
	return found
}

// want fails the test unless a check came to that, and said that.
func (f findings) want(t *testing.T, check string, health service.Health, part string) {
	t.Helper()
	if got := f[check]; got.Health != health || !strings.Contains(got.Found+" "+got.Advice, part) {
		t.Errorf("%s: %+v, want %s and %q", check, got, health, part)
	}
}

// slow tells whether a check has measured, and warns of the figure alone, as it does where a machine is busy.
func (f findings) slow(check string) bool {
	got := f[check]
	figure := map[string]string{"rtt": "median ", "script": " for a script call"}[check]
	return got.Health == service.HealthWarn && figure != "" && strings.Contains(got.Found, figure)
}

// allOK fails the test unless every check is there, and well but for those named, and for figures of a busy machine.
func (f findings) allOK(t *testing.T, but ...string) {
	t.Helper()
	for _, check := range []string{"reach", "version", "rights", "time", "clock", "rtt", "eviction", "slots", "replicas", "script"} {
		if got := f[check]; got.Health != service.HealthOK && !f.slow(check) && !strings.Contains(strings.Join(but, " "), check) {
			t.Errorf("%s: %+v, want ok", check, got)
		}
	}
}

func noKeys(t *testing.T, client goredis.UniversalClient) {
	t.Helper()
	if keys := client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func TestDoctorHealthy(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "200mb")
	found := diagnose(t, everything(t, "redis://"+server.Addr))
	found.allOK(t)
	for tries := 50; found.slow("rtt") || found.slow("script"); tries-- { // till the machine has a quiet moment
		if tries == 0 {
			t.Fatalf("%v: want neither to be slow", found)
		}
		found = diagnose(t, everything(t, "redis://"+server.Addr))
	}
	found.want(t, "version", service.HealthOK, server.Version())
	found.want(t, "replicas", service.HealthOK, "none")
	noKeys(t, server.Client())
}

func TestDoctorCluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	found := diagnose(t, everything(t, "redis+cluster://"+cluster.Addrs()[0]))
	found.allOK(t, "eviction") // no maxmemory
	found.want(t, "slots", service.HealthOK, "a cluster")
	for _, node := range cluster.Nodes {
		noKeys(t, node.Client())
	}
	found = diagnose(t, everything(t, "redis://"+cluster.Addrs()[0]))
	found.want(t, "slots", service.HealthFail, "redis+cluster://")

	found = diagnose(t, everything(t, "redis+cluster://"+redistest.Start(t).Addr))
	found.want(t, "reach", service.HealthFail, "")
}

func TestDoctorReplicas(t *testing.T) {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(master.Addr, ":")
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(master.Info("replication")["slave0"], "state=online"); {
		if time.Now().After(deadline) {
			t.Fatal("the replica does not come online")
		}
		time.Sleep(20 * time.Millisecond)
	}
	diagnose(t, everything(t, "redis://"+master.Addr)).want(t, "replicas", service.HealthOK, "1, at most ")
	found := diagnose(t, everything(t, "redis://"+replica.Addr))
	found.want(t, "replicas", service.HealthFail, "replica")
	found.want(t, "rights", service.HealthFail, "READONLY")
}

// A user with the documented rights and no more is told what the doctor can't see, and nothing fails; a right that is
// missing is named.
func TestDoctorRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	documented := strings.Fields("~sluice:* " + documentedRights(t))
	as := func(name string, rights []string) findings {
		args := []any{"acl", "setuser", name, "reset", "on", ">hunter2"}
		for _, r := range rights {
			args = append(args, r)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		found := diagnose(t, everything(t, fmt.Sprintf("redis://%s:hunter2@%s", url.PathEscape(name), server.Addr)))
		if strings.Contains(fmt.Sprint(found), "hunter2") {
			t.Errorf("the password is shown: %v", found)
		}
		return found
	}
	found := as("documented", documented)
	found.allOK(t, "eviction", "replicas", "script", "rights")
	if found["rights"].Health == service.HealthFail {
		t.Errorf("the documented rights: %+v", found["rights"])
	}
	for _, check := range []string{"eviction", "replicas", "script"} {
		found.want(t, check, service.HealthWarn, "+info")
	}
	if found := as("withinfo", append(documented, "+info")); !found.slow("script") {
		found.want(t, "script", service.HealthOK, "µs")
	}
	as("readonly", append(documented, "+hgetall", "-hlen", "-hdel")).want(t, "rights", service.HealthWarn, "ACL SETUSER readonly +hlen +hdel")
	for _, missing := range []string{"hset", "pexpire", "del", "zadd", "hgetall"} {
		name := "no" + missing
		as(name, append(documented, "-"+missing)).want(t, "rights", service.HealthFail, "+"+missing)
	}
	found = as("notime", append(documented, "-time"))
	found.want(t, "time", service.HealthFail, "+time")
	found.want(t, "rights", service.HealthFail, "+time")
	as("scoped", append(documented, "resetkeys", "~sluice:doctor:*")).allOK(t, "eviction", "replicas", "script") // its own keys alone
	found = as("elsewhere", append(documented, "resetkeys", "~other:*"))
	found.want(t, "rights", service.HealthFail, "sluice:*")

	found = diagnose(t, everything(t, "redis://documented:wrong@"+server.Addr))
	found.want(t, "reach", service.HealthFail, "password")
	if len(found) != 1 {
		t.Errorf("%v: want nothing after a failed reach", found)
	}
}

func TestDoctorEviction(t *testing.T) {
	for _, tt := range []struct {
		args   string
		health service.Health
		part   string
	}{
		{"--maxmemory 100mb --maxmemory-policy volatile-ttl", service.HealthOK, "volatile-ttl"},
		{"--maxmemory 100mb --maxmemory-policy allkeys-lru", service.HealthWarn, "fresh burst"},
		{"--maxmemory-policy noeviction", service.HealthWarn, "no maxmemory"},
	} {
		server := redistest.Start(t, strings.Fields(tt.args)...)
		diagnose(t, everything(t, "redis://"+server.Addr)).want(t, "eviction", tt.health, tt.part)
	}
	server := redistest.Start(t)
	full := number(server.Info("memory")["used_memory"]) * 6 / 5
	if err := server.Client().ConfigSet(t.Context(), "maxmemory", fmt.Sprint(full)).Err(); err != nil {
		t.Fatal(err)
	}
	diagnose(t, everything(t, "redis://"+server.Addr)).want(t, "eviction", service.HealthWarn, "nearly full")
}

func number(text string) (n int64) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// A proxy that refuses HELLO hides nothing.
func TestDoctorProxy(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "200mb")
	diagnose(t, everything(t, "redis://"+redistest.StartResp2Proxy(t, server).Addr)).allOK(t)
}

// A round trip near to the timeout is a warning, one beyond it a failure.
func TestDoctorSlow(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	for delay, health := range map[time.Duration]service.Health{20 * time.Millisecond: service.HealthWarn, 80 * time.Millisecond: service.HealthFail} {
		proxy.Delay(delay)
		rules := everything(t, "redis://"+proxy.Addr, func(c *policy.Config) {
			c.Store.Timeout, c.Rules = 60*time.Millisecond, c.Rules[:1]
		})
		diagnose(t, rules).want(t, "rtt", health, "median")
	}
}

func TestDoctorUnreachable(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	start := time.Now()
	found := diagnose(t, everything(t, "redis://"+server.Addr))
	found.want(t, "reach", service.HealthFail, "on_outage")
	if took := time.Since(start); len(found) != 1 || took > 10*time.Second {
		t.Errorf("%v after %v, want one finding after two seconds", found, took)
	}
	server.Cont()
	server.Kill()
	found = diagnose(t, everything(t, "redis://"+server.Addr))
	found.want(t, "reach", service.HealthFail, "refused")
}

func TestDoctorWithoutRedis(t *testing.T) {
	diagnose(t, everything(t, "")).want(t, "store", service.HealthOK, "in process")
	diagnose(t, everything(t, "env:NO_SUCH_REDIS_URL")).want(t, "store", service.HealthFail, "NO_SUCH_REDIS_URL")
	diagnose(t, everything(t, "gopher://x")).want(t, "store", service.HealthFail, "scheme")
}
