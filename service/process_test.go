package service_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
)

// In process there is no breaker, and the states are what is kept.
func TestProcessWithoutRedis(t *testing.T) {
	path := write(t, "", rules(10))
	s := open(t, path, service.Options{})
	get(s, "/")
	p := s.Process()
	if p.Breaker != nil || p.Share != nil {
		t.Error("a breaker, and there is no Redis")
	}
	if n := p.Stores["states"].Len(); n != 1 || len(p.Stores) != 1 {
		t.Errorf("%d keys in %d stores, want 1 in 1", n, len(p.Stores))
	}
	write(t, path, "rules: [")
	if s.Reload(t.Context()) == nil {
		t.Fatal("a broken file is read")
	}
	write(t, path, rules(20))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := p.Rules(); r.Loads != 2 || r.Refusals != 1 || r.Count != 1 || r.Hash != s.Status().Hash || !r.Refused.IsZero() {
		t.Errorf("%+v, want 2 readings of one rule, and 1 refused before the last", r)
	}
}

// Before Redis stands a breaker, whose changes are told.
func TestProcessWithRedis(t *testing.T) {
	server := redistest.Start(t)
	var mu sync.Mutex
	var changes []string
	s := open(t, write(t, "", outages("redis://"+server.Addr, "")), service.Options{OnBreaker: func(from, to failover.State) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, fmt.Sprint(from, "-", to))
	}})
	p := s.Process()
	if state, share := p.Breaker(), p.Share(); state != failover.Closed || share != 1 {
		t.Errorf("%v, share %v, want closed and 1", state, share)
	}
	server.Kill()
	for deadline := time.Now().Add(30 * time.Second); p.Breaker() != failover.Open; get(s, "/local") {
		if time.Now().After(deadline) {
			t.Fatal("Redis is away, and the breaker stays closed")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(changes) == 0 || changes[0] != "closed-open" {
		t.Errorf("told of %q, want closed-open first", changes)
	}
	if n := p.Stores["buckets"].Len(); n != 1 {
		t.Errorf("%d keys in the buckets, want 1", n)
	}
}

// Rules and stores are of one reading of the file; decisions in them are those of the middleware.
func TestCurrent(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", outages("redis://"+server.Addr, ""))
	s := open(t, path, service.Options{})
	take := func(rule string) sluice.Decision {
		t.Helper()
		rules, stores := s.Current()
		for _, r := range rules.All() {
			if r.Name == rule {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/"+rule, nil)
				req.RemoteAddr = "192.0.2.1:1"
				v, err := sluice.TakeAll(t.Context(), stores[r.OnOutage], r.AppendAsks(nil, req, 1))
				if err != nil {
					t.Fatal(err)
				}
				return v.Decision
			}
		}
		t.Fatalf("no rule %s", rule)
		return sluice.Decision{}
	}
	get(s, "/allow") // 192.0.2.1, as httptest has it
	if d := take("allow"); d.Remaining != 1 || d.Source != sluice.Shared {
		t.Errorf("%+v, want 1 of 3 left in Redis after the middleware took one", d)
	}
	write(t, path, outages("redis://"+server.Addr, "mode: local"))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rules, _ := s.Current(); rules.Mode() != policy.ModeLocal {
		t.Errorf("mode %v, want local", rules.Mode())
	}
	if d := take("allow"); d.Source != sluice.Local {
		t.Errorf("%+v in mode local: want the buckets, whatever on_outage says", d)
	}
}
