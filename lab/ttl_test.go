package lab

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/redis"
)

// A short expiry admits what a limit forbids, a long one keeps what nobody needs, and the time to full does neither.
func TestTTL(t *testing.T) {
	r, err := TTL(t.Context(), TTLParams{Visitors: 20_000, Server: realServer})
	if err != nil {
		t.Fatal(err)
	}
	formed(t, r, "ttl", "fixed_short", "fixed_long", "time_to_full")
	short, long, ours := r.Row("fixed_short"), r.Row("fixed_long"), r.Row("time_to_full")
	for _, row := range []Row{long, ours} {
		if row.Number("admitted") > row.Number("bound") || row.Number("refilled_early") != 0 {
			t.Errorf("%+v: want at most the bound", row)
		}
	}
	if short.Number("of_bound") < 10 || short.Number("refilled_early") < 100 {
		t.Errorf("%+v: want far above the bound", short)
	}
	if long.Number("keys_most") != 20_000 || ours.Number("keys_most") > 1000 || short.Number("keys_most") >= ours.Number("keys_most") {
		t.Errorf("keys: %v, %v and %v", short.Number("keys_most"), long.Number("keys_most"), ours.Number("keys_most"))
	}
	if bytes := r.Row("fixed_long").Number("bytes_most"); bytes < 20_000*50 || bytes > 20_000*500 {
		t.Errorf("%v bytes of 20,000 keys", bytes)
	}
}

func TestTTLOnMiniredis(t *testing.T) {
	r, err := TTL(t.Context(), TTLParams{Visitors: 100, Server: miniServer})
	if err != nil {
		t.Fatal(err)
	}
	formed(t, r, "ttl", "fixed_short", "fixed_long", "time_to_full")
	if n := r.Row("time_to_full").Number("bytes_most"); !math.IsNaN(n) {
		t.Errorf("%v bytes, want none: miniredis does not tell", n)
	}
}

// A fixed expiry is early for a limit that is slower than it, however long it is.
func TestTTLLongIsEarlyToo(t *testing.T) {
	p := TTLParams{Limit: sluice.Limit{Count: 10, Period: 30 * 24 * time.Hour}, Pause: 25 * time.Hour, Duration: 10 * 24 * time.Hour, Visitors: 1}.filled()
	bucket := sluice.Must(tokenbucket.New(p.Limit))
	for _, e := range p.expiries() {
		_, admitted, early := p.spend(e, bucket)
		if full := e.name == "time_to_full"; (float64(admitted) > p.bound()) == full || (early > 0) == full {
			t.Errorf("%s: %d admitted, %d early", e.name, admitted, early)
		}
	}
}

// A key of virtual time lives and dies as the store's does.
func TestTTLAsTheStoreDoes(t *testing.T) {
	for _, limit := range []sluice.Limit{{Count: 10, Period: time.Hour, Burst: 3}, {Count: 7, Period: time.Second, Burst: 2}} {
		bucket := sluice.Must(tokenbucket.New(limit))
		script, _ := bucket.Lua()
		m := miniredis.RunT(t)
		m.SetTime(time.UnixMicro(clockStart))
		m.ClockTTL(true)
		c := (&server{network: "tcp", addr: m.Addr()}).client(wire{pool: 1, timeout: connectTime})
		defer c.Close()
		store := redis.New(c, redis.Options{Timeout: connectTime, NoCoalescing: true, NoKnownDenials: true})
		key := virtualKey{strategy: bucket, expiry: expiry{"", toMillisecond}}
		at := time.Duration(0)
		for i := range 200 {
			at += time.Duration(i*i%17) * limit.Period / 40
			switch i % 7 {
			case 3:
				at = max(at, key.expires-time.Microsecond)
			case 4:
				at = max(at, key.expires)
			}
			m.SetTime(time.UnixMicro(clockStart + at.Microseconds()))
			n, err := c.Exists(t.Context(), "sluice:{x}:ttl:"+script.Name).Result()
			if err != nil {
				t.Fatal(err)
			}
			if lives := key.expires > at; lives != (n == 1) {
				t.Fatalf("%v, %v: lives %v, %d in Redis", limit, at, lives, n)
			}
			d, err := store.Take(t.Context(), sluice.Ask{Strategy: bucket, Key: sluice.Key{Rule: "ttl", Subject: "x"}, N: 1})
			if err != nil {
				t.Fatal(err)
			}
			if allowed, early := key.take(at); allowed != d.Allowed || early {
				t.Fatalf("%v, %v: %v, early %v, in Redis %v", limit, at, allowed, early, d.Allowed)
			}
		}
	}
}

func TestTTLCountsKeys(t *testing.T) {
	minute := func(time.Duration) time.Duration { return time.Minute }
	for _, c := range []struct {
		requests int
		visits   []time.Duration
		want     keyCount
	}{
		{1, []time.Duration{0}, keyCount{mean: 0.5, most: 1}},
		{1, []time.Duration{0, 0, 30e9}, keyCount{mean: 1.5, most: 3}},
		{1, []time.Duration{0, 60e9}, keyCount{mean: 1, most: 1}},         // the first ends as the second begins, and both by the end
		{1, []time.Duration{90e9}, keyCount{mean: 0.25, most: 1, end: 1}}, // it outlives the run
		{61, []time.Duration{0}, keyCount{mean: 1, most: 1}},              // renewed with each request, to the end
	} {
		p := TTLParams{Limit: sluice.Limit{Count: 100, Period: time.Hour}, Requests: c.requests, Duration: 2 * time.Minute}.filled()
		bucket := sluice.Must(tokenbucket.New(p.Limit))
		got, err := p.keys(t.Context(), expiry{"", minute}, bucket, c.visits)
		if err != nil || math.Abs(got.mean-c.want.mean) > 1e-9 || got.most != c.want.most || got.end != c.want.end {
			t.Errorf("%v: %+v, %v, want %+v", c.visits, got, err, c.want)
		}
	}
}

func TestTTLEndsWithItsContext(t *testing.T) {
	ends(t, func(ctx context.Context) (Result, error) {
		return TTL(ctx, TTLParams{Visitors: 900_000, Requests: 11, Server: miniServer})
	})
}

func TestTTLCheck(t *testing.T) {
	refused(t, map[string]func(*TTLParams){
		"Count -1":         func(p *TTLParams) { p.Limit.Count = -1 },
		"Short":            func(p *TTLParams) { p.Short = 1 },
		"Long":             func(p *TTLParams) { p.Long = -1 },
		"Pause -1ns":       func(p *TTLParams) { p.Pause = -1 },
		"Pause 1ms":        func(p *TTLParams) { p.Pause = time.Millisecond },
		"Visitors 1000001": func(p *TTLParams) { p.Visitors = 1_000_001 },
		"Requests -1":      func(p *TTLParams) { p.Requests = -1 },
		"Requests 100":     func(p *TTLParams) { p.Visitors, p.Requests = 1_000_000, 100 },
		"Duration":         func(p *TTLParams) { p.Duration = -1 },
	})
}
