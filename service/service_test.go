package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy/rulefile"
	"github.com/sluice-go/sluice/service"
)

var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})

// noon is a time at the start of a minute, where a test's clock stands.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// write writes a rule file; an empty path makes a new one.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "rules.yaml")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// quiet is a logger, and what was logged to it.
type quiet struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (q *quiet) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.buf.Write(b)
}

func (q *quiet) String() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.buf.String()
}

func (q *quiet) logger() *slog.Logger { return slog.New(slog.NewTextHandler(q, nil)) }

func open(t *testing.T, path string, o service.Options) *service.Service {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := service.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func get(s *service.Service, target string) *http.Response {
	w := httptest.NewRecorder()
	s.Middleware(ok).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w.Result()
}

// rules is a rule file of one rule, limited to count a minute per IP.
func rules(count int) string {
	return fmt.Sprintf("rules:\n  - {name: api, match: /, limits: [{algorithm: fixed_window, limit: %d/min, subject: ip}]}\n", count)
}

func TestOpenFaults(t *testing.T) {
	_, err := service.Open(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), service.Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v, want ErrNotExist", err)
	}
	path := write(t, "", "headers: loud\nrules:\n  - {name: api, match: /, limits: [{algorithm: magic, limit: 1/s, subject: ip}]}\n")
	_, err = service.Open(t.Context(), path, service.Options{})
	if faults, ok := errors.AsType[rulefile.Errors](err); !ok || len(faults) != 2 {
		t.Errorf("a file with two faults: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := service.Open(ctx, write(t, "", rules(1)), service.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
}

// Counters survive a reload; a file that can't be used leaves the rules as they were.
func TestReload(t *testing.T) {
	path := write(t, "", rules(2))
	s := open(t, path, service.Options{Clock: noon})
	want := func(when, state string) {
		t.Helper()
		if got := get(s, "/").Header.Get("RateLimit"); got != state {
			t.Errorf("%s: RateLimit %s, want %s", when, got, state)
		}
	}
	want("at first", `"api";r=1;t=60`)

	write(t, path, rules(10))
	want("before the reload", `"api";r=0;t=60`)
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("after it", `"api";r=7;t=60`)

	for name, text := range map[string]string{
		"not YAML":      "rules: [",
		"a fault":       rules(0),
		"another store": "store: {redis: 'redis://localhost'}\n" + rules(100),
	} {
		write(t, path, text)
		err := s.Reload(t.Context())
		if err == nil {
			t.Errorf("%s: reloaded", name)
		}
		if name == "another store" && !strings.Contains(err.Error(), "restart to change store") {
			t.Errorf("%s: %v", name, err)
		}
	}
	want("after failed reloads", `"api";r=6;t=60`)

	write(t, path, "headers: x-ratelimit\n"+rules(10))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get(s, "/").Header.Get("X-RateLimit-Remaining"); got != "5" {
		t.Errorf("after a change of style: X-RateLimit-Remaining %s, want 5", got)
	}
}

// Requests go on while files are reloaded, and none is decided by a half of each.
func TestReloadUnderLoad(t *testing.T) {
	path := write(t, "", rules(1_000_000))
	s := open(t, path, service.Options{})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				if code := get(s, "/").StatusCode; code != 200 {
					t.Errorf("status %d", code)
					return
				}
				s.Limiter("api", "")
			}
		})
	}
	for i := range 50 {
		write(t, path+".new", rules(1_000_000+i))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestLimiter(t *testing.T) {
	s := open(t, write(t, "", `
rules:
  - name: one
    match: /one
    limits: [{algorithm: fixed_window, limit: 3/min, subject: ip}]
  - name: two
    match: /two
    limits:
      - {name: a, algorithm: fixed_window, limit: 3/min, subject: ip}
      - {algorithm: fixed_window, limit: 9/min, subject: global}
`), service.Options{Clock: noon})
	for _, c := range []struct {
		rule, limit string
		found       bool
	}{
		{"one", "", true}, {"one", "fixed_window-ip", true}, {"one", "a", false},
		{"two", "", false}, {"two", "a", true}, {"two", "fixed_window-global", true}, {"three", "", false}, {"", "", false},
	} {
		if l, ok := s.Limiter(c.rule, c.limit); ok != c.found || (l != nil) != c.found {
			t.Errorf("Limiter(%q, %q): %v, want %v", c.rule, c.limit, ok, c.found)
		}
	}
	a, _ := s.Limiter("one", "")
	if b, _ := s.Limiter("one", ""); a != b {
		t.Error("two limiters of one limit: their waiters would not queue together")
	}

	get(s, "/one")
	subject := s.Rules().All()[0].Limits[0].Subject(httptest.NewRequest("GET", "/one", nil))
	d, err := a.Allow(t.Context(), subject)
	if err != nil || d.Remaining != 1 {
		t.Errorf("after a request: %d left, error %v; want 1: the middleware's counter", d.Remaining, err)
	}
}

// A decision in process allocates nothing on its way through a service's limiter.
func TestLimiterAllocates(t *testing.T) {
	s := open(t, write(t, "", rules(1_000_000)), service.Options{})
	l, _ := s.Limiter("api", "")
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Allow(ctx, "a") }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestObserver(t *testing.T) {
	var seen []string
	s := open(t, write(t, "", rules(1)), service.Options{
		Observer: sluice.ObserverFunc(func(_ context.Context, a sluice.Ask, d sluice.Decision, err error, _ time.Duration) {
			seen = append(seen, fmt.Sprintf("%s %v %v", a.Key.Rule, d.Allowed, err))
		}),
	})
	get(s, "/")
	get(s, "/")
	if want := "[api true <nil> api false <nil>]"; fmt.Sprint(seen) != want {
		t.Errorf("observed %v, want %s", seen, want)
	}
}

// After Close requests are answered as in an outage.
func TestCloseTwice(t *testing.T) {
	s := open(t, write(t, "", "store: {redis: 'redis://127.0.0.1:1'}\n"+rules(1)), service.Options{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if a, b := get(s, "/").StatusCode, get(s, "/").StatusCode; a != 200 || b != 429 {
		t.Errorf("after Close: status %d and %d, want 200 and 429", a, b)
	}
}

// store.redis may be a variable, a file or a URL. Errors name it, and never hold the password.
func TestRedisAddress(t *testing.T) {
	server := miniredis.RunT(t)
	url := "redis://" + server.Addr()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	t.Setenv("SLUICE_TEST_GOOD", url)
	t.Setenv("SLUICE_TEST_EMPTY", "  ")
	t.Setenv("SLUICE_TEST_BAD", "redis://user:hunter2@host:port")
	t.Setenv("SLUICE_TEST_SLASH", "redis://user:hun/ter2@host:6379")
	t.Setenv("SLUICE_TEST_SCHEME", "http://user:hunter2@host:6379")
	for _, c := range []struct{ redis, err string }{
		{url, ""},
		{"env:SLUICE_TEST_GOOD", ""},
		{file("good", url+"\n"), ""},
		{"env:SLUICE_TEST_NONE", "environment variable SLUICE_TEST_NONE is not set"},
		{"env:SLUICE_TEST_EMPTY", "environment variable SLUICE_TEST_EMPTY is not set"},
		{"env:SLUICE_TEST_BAD", "environment variable SLUICE_TEST_BAD"},
		{"env:SLUICE_TEST_SLASH", "environment variable SLUICE_TEST_SLASH"},
		{"env:SLUICE_TEST_SCHEME", "environment variable SLUICE_TEST_SCHEME"},
		{"file:" + filepath.Join(dir, "none"), filepath.Join(dir, "none")},
		{file("empty", "\n"), filepath.Join(dir, "empty") + " is empty"},
		{"http://user:hunter2@host:6379", "the URL in the rule file"},
	} {
		path := write(t, "", fmt.Sprintf("store: {redis: '%s', timeout: 5s}\n", c.redis)+rules(5))
		s, err := service.Open(t.Context(), path, service.Options{Logger: slog.New(slog.DiscardHandler)})
		if c.err == "" {
			if err != nil {
				t.Errorf("%s: %v", c.redis, err)
				continue
			}
			if resp := get(s, "/"); resp.StatusCode != 200 {
				t.Errorf("%s: status %d, want 200", c.redis, resp.StatusCode)
			}
			s.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "service: store.redis: ") {
			t.Errorf("%s: error %v, want one with %q", c.redis, err, c.err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hun")) {
			t.Errorf("%s: the error holds the password: %v", c.redis, err)
		}
	}
}

// A client of the caller's is used, whatever the file says, and stays open.
func TestClient(t *testing.T) {
	server := miniredis.RunT(t)
	client := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	defer client.Close()
	var log quiet
	s := open(t, write(t, "", "store: {redis: 'env:SLUICE_TEST_NONE', prefix: mine, timeout: 5s}\n"+rules(1)), service.Options{
		Client: client, Logger: log.logger(),
	})
	if a, b := get(s, "/").StatusCode, get(s, "/").StatusCode; a != 200 || b != 429 {
		t.Errorf("status %d and %d, want 200 and 429", a, b)
	}
	for _, key := range server.Keys() {
		if !strings.HasPrefix(key, "mine:{") {
			t.Errorf("key %s, want prefix mine:{", key)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Ping(context.Background()).Err(); err != nil {
		t.Errorf("after Close: %v, want the client open", err)
	}
}
