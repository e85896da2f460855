package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/service"
)

// windows counts what a fixed window admitted in each of its windows, by the window's end in µs. A decision's ResetAfter
// leads there. Its At alone would not do: a request that read the clock just before the end may have been counted
// after it.
type windows struct {
	mu       sync.Mutex
	admitted map[int64]int
}

func (w *windows) Observe(_ context.Context, _ sluice.Ask, d sluice.Decision, _ error, _ time.Duration) {
	if d.Allowed {
		w.mu.Lock()
		w.admitted[d.At+d.ResetAfter.Microseconds()]++
		w.mu.Unlock()
	}
}

// serve serves the example's rules over HTTP, and tells o, unless it is nil, of each decision.
func serve(t *testing.T, o sluice.Observer) string {
	t.Helper()
	limits, err := service.Open(t.Context(), "../rules.yaml", service.Options{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(limits.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	t.Cleanup(func() {
		server.Close()
		limits.Close()
	})
	return server.URL
}

// load drives 50 workers for three seconds and returns the timeline, its sum, and how long it took at most.
func load(t *testing.T, url string) (timeline []second, total second, took time.Duration) {
	t.Helper()
	start := time.Now()
	total = drive(t.Context(), url, 50, 3*time.Second, func(at time.Duration, s second) {
		t.Logf("until %4v: %+v", at.Round(100*time.Millisecond), s)
		timeline = append(timeline, s)
	})
	took = time.Since(start)
	if total.other > 0 || total.refused < 50 {
		t.Errorf("%+v: want no other answer, and many refused", total)
	}
	return timeline, total, took
}

// 50 workers against a token bucket of 10 a second, burst 10: the first ten pass at once, then ten a second.
func TestTokenBucket(t *testing.T) {
	t.Parallel()
	timeline, total, took := load(t, serve(t, nil)+"/token")
	most := 10 + int(10*took/time.Second)
	if total.admitted > most || total.admitted < most*8/10 {
		t.Errorf("%d admitted in %v, want %d to %d", total.admitted, took, most*8/10, most)
	}
	if len(timeline) != 3 {
		t.Fatalf("%d lines, want 3", len(timeline))
	}
	if first := timeline[0].admitted; first < 10 {
		t.Errorf("%d admitted in the first second, want the burst of 10 at least", first)
	}
}

// 50 workers against a fixed window of 10 a second: ten in each second of the clock, never more.
func TestFixedWindow(t *testing.T) {
	t.Parallel()
	seen := &windows{admitted: map[int64]int{}}
	_, total, took := load(t, serve(t, seen)+"/fixed")
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for end, n := range seen.admitted {
		if n > 10 || end%1_000_000 != 0 {
			t.Errorf("%d admitted in the second that ends at %d µs, want at most 10, and a whole second", n, end)
		}
	}
	least, most := 8*int(took/time.Second), 10*len(seen.admitted)
	if total.admitted < least || total.admitted > most {
		t.Errorf("%d admitted in %v and %d windows, want %d to %d", total.admitted, took, len(seen.admitted), least, most)
	}
}

func TestRun(t *testing.T) {
	var answer atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(int(answer.Load())) }))
	defer server.Close()
	for _, c := range []struct {
		args   string
		answer int // 0: nobody's
		exit   int
		said   string
	}{
		{"--url " + server.URL + " --duration 20ms --workers 2", 200, 0, "total"},
		{"--url " + server.URL + " --duration 20ms --workers 2", 429, 0, "total"},
		{"--url " + server.URL + " --duration 20ms --workers 2", 500, 1, "total"},
		{"--url http://127.0.0.1:1 --duration 20ms", 0, 1, "total"},
		{"--url localhost:8080", 0, 2, `--url "localhost:8080": want http://host/path`},
		{"--workers 0", 0, 2, "--workers 0: want at least 1"},
		{"--duration 0s", 0, 2, "--duration 0s: want more than 0"},
		{"--loud", 0, 2, "-loud"},
		{"more", 0, 2, `unexpected argument "more"`},
		{"--help", 0, 0, "-workers"},
	} {
		t.Run(fmt.Sprint(c.args, " ", c.answer), func(t *testing.T) {
			answer.Store(int64(c.answer))
			var out bytes.Buffer
			if exit := run(t.Context(), strings.Fields(c.args), &out, &out); exit != c.exit || !strings.Contains(out.String(), c.said) {
				t.Errorf("exit %d, printed %q; want %d and %q", exit, &out, c.exit, c.said)
			}
		})
	}
}
