package service_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/redis"
)

// overridable is a rule file of two rules: the first counts API keys, the second has two limits.
func overridable(server *redistest.Server, more string) string {
	return fmt.Sprintf(`store: {redis: 'redis://%s', timeout: 5s}
failover: {open_for: 1h, instances: 1}
%s
rules:
  - name: api
    match: /
    deny: ["header:X-API-Key=blocked"]
    limits:
      - {algorithm: token_bucket, limit: 3/day, subject: "header:X-API-Key"}
  - name: two
    match: /two
    limits:
      - {name: a, algorithm: fixed_window, limit: 3/day, subject: ip}
      - {name: b, algorithm: fixed_window, limit: 1000/day, subject: global}
`, server.Addr, more)
}

// codes is what n requests with an API key are answered.
func codes(s *service.Service, key string, n int) string {
	var all []string
	for range n {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", key)
		w := httptest.NewRecorder()
		s.Middleware(ok).ServeHTTP(w, r)
		all = append(all, fmt.Sprint(w.Code))
	}
	return strings.Join(all, " ")
}

// direct is the store that the override command writes to.
func direct(t *testing.T, s *service.Service) *redis.Store {
	t.Helper()
	st, err := service.Direct(s.Rules().Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// overrideOf is an override of the first rule for an API key.
func overrideOf(t *testing.T, s *service.Service, key string, count int64, until time.Time) redis.Override {
	t.Helper()
	limit := s.Rules().All()[0].Limits[0]
	subject, err := limit.SubjectKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return redis.Override{Rule: limit.KeyRule, Subject: subject, Limit: sluice.Limit{Count: count, Period: 24 * time.Hour}, Until: until}
}

func set(t *testing.T, st *redis.Store, o redis.Override) {
	t.Helper()
	if err := st.SetOverride(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// known waits until s knows n overrides.
func known(t *testing.T, s *service.Service, n int) {
	t.Helper()
	await(t, s, fmt.Sprintf("%d overrides", n), func(st service.Status) bool { return len(st.Overrides) == n })
}

// One process sets an override, the others obey it: for that subject alone, with what it has spent, also after a reload,
// and until it is cleared.
func TestOverride(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", overridable(server, ""))
	one, two := open(t, path, service.Options{}.Quickly()), open(t, path, service.Options{}.Quickly())
	if got, want := codes(one, "acme", 4), "200 200 200 429"; got != want {
		t.Fatalf("at first: %s, want %s", got, want)
	}
	st := direct(t, one)
	set(t, st, overrideOf(t, one, "acme", 6, time.Time{}))
	known(t, one, 1)
	known(t, two, 1)
	if got, want := codes(two, "acme", 4)+" "+codes(one, "acme", 1), "200 200 200 429 429"; got != want {
		t.Errorf("6 a day with 3 spent: %s, want %s", got, want)
	}
	if got, want := codes(two, "other", 4), "200 200 200 429"; got != want {
		t.Errorf("another subject: %s, want %s", got, want)
	}
	if got, want := codes(two, "blocked", 1), "403"; got != want {
		t.Errorf("a subject that is denied: %s, want %s", got, want)
	}

	write(t, path, overridable(server, "headers: x-ratelimit"))
	if err := two.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(t, st, overrideOf(t, one, "acme", 8, time.Time{}))
	await(t, two, "8", func(st service.Status) bool { return st.Overrides[0].Limit.Count == 8 })
	if got, want := codes(two, "acme", 3), "200 200 429"; got != want {
		t.Errorf("8 a day with 6 spent: %s, want %s", got, want)
	}

	o := overrideOf(t, one, "acme", 0, time.Time{})
	if cleared, err := st.ClearOverride(t.Context(), o.Rule, o.Subject); err != nil || !cleared {
		t.Fatalf("cleared %v, %v", cleared, err)
	}
	known(t, two, 0)
	if got, want := codes(two, "acme", 1), "429"; got != want {
		t.Errorf("cleared: %s, want %s", got, want)
	}
	keys := server.Client().Keys(t.Context(), "*").Val()
	if slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(k, "acme") }) {
		t.Errorf("keys %q hold the secret", keys)
	}
}

// A decision under an override is the one command that it is without: reading overrides is not a part of it.
func TestOverrideAddsNoCommand(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", overridable(server, ""))
	s := open(t, path, service.Options{}.Seldom())
	set(t, direct(t, s), overrideOf(t, s, "acme", 1000, time.Time{}))
	s = open(t, path, service.Options{}.Seldom()) // reads it
	known(t, s, 1)
	codes(s, "acme", 1) // loads the script
	calls := redistest.CallsOf(t, server.Client(), func() {
		if got := codes(s, "acme", 100); got != strings.TrimSpace(strings.Repeat("200 ", 100)) {
			t.Errorf("answers %s, want 200", got)
		}
	})
	if calls["evalsha"] != 100 || calls["hgetall"] != 0 || calls["eval"] != 0 {
		t.Errorf("100 decisions are %v, want 100 EVALSHA", calls)
	}

	s = open(t, path, service.Options{}.Quickly())
	read := s.Status().OverridesRead
	await(t, s, "another look", func(st service.Status) bool { return st.OverridesRead.After(read) })
	calls = redistest.CallsOf(t, server.Client(), func() { time.Sleep(100 * time.Millisecond) })
	if calls["hgetall"] < 1 || calls["evalsha"] != calls["hgetall"] {
		t.Errorf("looks are %v, want one EVALSHA with one HGETALL each", calls)
	}
}

// What is known of overrides stays in force while Redis is away, in the buckets that decide then.
func TestOverrideOutage(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", overridable(server, ""))
	var log quiet
	s := open(t, path, service.Options{Logger: log.logger()}.Quickly())
	set(t, direct(t, s), overrideOf(t, s, "acme", 6, time.Time{}))
	known(t, s, 1)
	if got, want := codes(s, "acme", 2), "200 200"; got != want {
		t.Errorf("with Redis: %s, want %s", got, want)
	}
	server.Kill()
	await(t, s, "noticed", func(st service.Status) bool { return st.OverridesError != "" })
	if got, want := codes(s, "acme", 5), "200 200 200 200 429"; got != want {
		t.Errorf("6 a day with 2 spent in Redis: %s, want %s", got, want)
	}
	if got, want := codes(s, "other", 4), "200 200 200 429"; got != want {
		t.Errorf("another subject: %s, want %s", got, want)
	}
	write(t, path, overridable(server, "headers: x-ratelimit"))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); len(st.Overrides) != 1 || st.OverridesRead.IsZero() {
		t.Errorf("after a reload in the outage: %+v, want the override", st)
	}
	if got, want := codes(s, "acme", 1), "429"; got != want {
		t.Errorf("after a reload in the outage: %s, want %s", got, want)
	}
	if n := strings.Count(log.String(), "overrides can't be read"); n != 1 {
		t.Errorf("reported %d times, want once:\n%s", n, &log)
	}
}

// An override ends at its time, without another look at Redis.
func TestOverrideEnds(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", overridable(server, ""))
	s := open(t, path, service.Options{}.Seldom())
	st := direct(t, s)
	end := time.Now().Add(time.Second)
	set(t, st, overrideOf(t, s, "acme", 6, end))
	set(t, st, overrideOf(t, s, "late", 6, time.Now().Add(-time.Second)))
	s = open(t, path, service.Options{}.Seldom())
	known(t, s, 2)
	if got, want := codes(s, "late", 4), "200 200 200 429"; got != want {
		t.Errorf("one that has ended: %s, want %s", got, want)
	}
	before := codes(s, "acme", 4)
	if want := "200 200 200 200"; before != want && time.Now().Before(end) {
		t.Errorf("before its end: %s, want %s", before, want)
	}
	time.Sleep(time.Until(end))
	if got, want := codes(s, "acme", 1), "429"; got != want {
		t.Errorf("at its end: %s, want %s", got, want)
	}
}

// Limiters for other work than requests follow overrides too, those that were asked for before as well.
func TestOverrideLimiter(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, write(t, "", overridable(server, "")), service.Options{}.Quickly())
	l, _ := s.Limiter("api", "")
	o := overrideOf(t, s, "acme", 6, time.Time{})
	st := direct(t, s)
	remaining := func(l *sluice.Limiter, subject string, want int64) {
		t.Helper()
		if d, err := l.Peek(t.Context(), subject, 1); err != nil || d.Remaining != want {
			t.Errorf("%d remaining, %v: want %d", d.Remaining, err, want)
		}
	}
	remaining(l, o.Subject, 3)
	set(t, st, o)
	known(t, s, 1)
	remaining(l, o.Subject, 6)
	remaining(l, "another", 3)
	plan := l.With(sluice.Must(policy.NewStrategy("token_bucket", sluice.Limit{Count: 4, Period: time.Hour, Burst: 4})))
	remaining(plan, "another", 4)
	remaining(plan, o.Subject, 6)
	if again, _ := s.Limiter("api", ""); again != l {
		t.Error("another limiter: those who wait would not queue together")
	}
	if _, err := st.ClearOverride(t.Context(), o.Rule, o.Subject); err != nil {
		t.Fatal(err)
	}
	known(t, s, 0)
	remaining(l, o.Subject, 3)
}

// Overrides that fit no limit, and entries that can't be read, do no harm and are named.
func TestOverrideUnused(t *testing.T) {
	server := redistest.Start(t)
	var log quiet
	s := open(t, write(t, "", overridable(server, "")), service.Options{Logger: log.logger()}.Quickly())
	st := direct(t, s)
	set(t, st, redis.Override{Rule: "gone", Subject: "a", Limit: sluice.Limit{Count: 1, Period: time.Second}})
	set(t, st, redis.Override{Rule: "two", Subject: "b", Limit: sluice.Limit{Count: 1, Period: time.Second}}) // it has two limits
	set(t, st, redis.Override{Rule: "two/a", Subject: "c", Limit: sluice.Limit{Count: 2, Period: time.Second, Burst: 1}})
	server.Client().HSet(t.Context(), "sluice:{overrides}", "api d", "5/s")
	set(t, st, overrideOf(t, s, "acme", 4, time.Time{}))
	known(t, s, 4)
	if got, want := codes(s, "acme", 5), "200 200 200 200 429"; got != want {
		t.Errorf("the one that is good: %s, want %s", got, want)
	}
	status := s.Status().OverridesError
	for _, want := range []string{"override of gone for a: the rule file has no such limit", "override of two for b:", "override of two/a for c: policy: fixedwindow: Burst 1", `field "api d"`} {
		if !strings.Contains(status, want) {
			t.Errorf("status says %q, want %q in it", status, want)
		}
		if !strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

// Where rules can't be made anew, since a secret that they need has gone, those that run stay, overrides included.
func TestOverrideSecretGone(t *testing.T) {
	server := redistest.Start(t)
	secret := filepath.Join(t.TempDir(), "blocked")
	write(t, secret, "blocked\n")
	path := write(t, "", strings.Replace(overridable(server, ""), "=blocked", "=file:"+secret, 1))
	s := open(t, path, service.Options{}.Quickly())
	st := direct(t, s)
	set(t, st, overrideOf(t, s, "acme", 6, time.Time{}))
	known(t, s, 1)
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	set(t, st, overrideOf(t, s, "other", 6, time.Time{}))
	await(t, s, "the fault", func(st service.Status) bool { return strings.Contains(st.OverridesError, secret) })
	if got, want := codes(s, "acme", 7)+" "+codes(s, "blocked", 1), "200 200 200 200 200 200 429 403"; got != want {
		t.Errorf("what was in force: %s, want %s", got, want)
	}
}

// Redis is left alone in mode local, and overrides stay in force.
func TestOverrideModeLocal(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", overridable(server, ""))
	s := open(t, path, service.Options{}.Quickly())
	set(t, direct(t, s), overrideOf(t, s, "acme", 5, time.Time{}))
	known(t, s, 1)
	write(t, path, overridable(server, "mode: local"))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // a look that was under way
	calls := redistest.CallsOf(t, server.Client(), func() {
		if got, want := codes(s, "acme", 6), "200 200 200 200 200 429"; got != want {
			t.Errorf("5 a day: %s, want %s", got, want)
		}
		time.Sleep(100 * time.Millisecond)
	})
	if len(calls) != 0 {
		t.Errorf("calls %v, want none", calls)
	}
}

// Rules are the same with an override as without, but for it.
func TestOverriddenKeepsTheRest(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, write(t, "", overridable(server, "")), service.Options{}.Seldom())
	o := overrideOf(t, s, "acme", 6, time.Time{})
	merged, err := service.Overridden(s.Rules(), []redis.Override{o}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Rules().Config(), merged.Config()
	b.Rules[0].Limits[0].Overrides = nil
	if got, want := fmt.Sprintf("%+v", b), fmt.Sprintf("%+v", a); got != want {
		t.Errorf("rules were\n%s\nand are\n%s", want, got)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got, want := merged.All()[0].Limits[0].Subject(r), s.Rules().All()[0].Limits[0].Subject(r); got != want {
		t.Errorf("a subject is %q, want %q", got, want)
	}
}
