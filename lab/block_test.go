package lab

import (
	"context"
	"math"
	"testing"
	"time"
)

var blockRows = []string{"alone", "token_bucket", "token_bucket_1000_per_s", "log_zset", "log_zset_pause", "log_zset_counted", "log_list_walked"}

// Scripts that look at every entry take the server far longer than those that don't, and others wait for as long.
func TestBlock(t *testing.T) {
	p := BlockParams{Entries: 50_000, Duration: 200 * time.Millisecond, Every: 50 * time.Millisecond, Server: realServer}
	r, err := Block(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	formed(t, r, "block", blockRows...)
	quick := r.Row("token_bucket_1000_per_s").Number("server_us_per_decision")
	for _, name := range []string{"log_zset_pause", "log_zset_counted", "log_list_walked"} {
		row := r.Row(name)
		took := row.Number("server_us_per_decision")
		if took < 10*quick {
			t.Errorf("%s takes %v µs, a bucket %v: want far more", name, took, quick)
		}
		if waited := row.Number("others_max_ms"); waited < took/1e3/2 {
			t.Errorf("%s takes %v µs, and others wait %v ms: want about as long", name, took, waited)
		}
		if row.Number("decisions") < 1 {
			t.Errorf("%s: no decision", name)
		}
	}
	if log, bucket := r.Row("log_zset").Number("key_bytes"), r.Row("token_bucket").Number("key_bytes"); !(log > 1000*bucket) {
		t.Errorf("a log of %v bytes, a bucket of %v: want far more", log, bucket)
	}
	if n := r.Row("alone").Number("decisions"); n != 0 {
		t.Errorf("alone: %v decisions", n)
	}
	for _, row := range r.Results {
		if row.Number("others_requests") < 100 {
			t.Errorf("%s: %v requests of others, want 4 each ms", row.Name, row.Number("others_requests"))
		}
	}
}

// miniredis has all but the server's own figures.
func TestBlockOnMiniredis(t *testing.T) {
	r, err := Block(t.Context(), BlockParams{Entries: 2000, Duration: 50 * time.Millisecond, Every: 20 * time.Millisecond, Server: miniServer})
	if err != nil {
		t.Fatal(err)
	}
	formed(t, r, "block", blockRows...)
	row := r.Row("log_list_walked")
	if !math.IsNaN(row.Number("server_us_per_decision")) || !math.IsNaN(row.Number("key_bytes")) || row.Number("decisions") < 1 || !(row.Number("others_max_ms") > 0) {
		t.Errorf("%+v", row)
	}
}

// The logs decide as logs do, or their cost would not be that of a limiter.
func TestBlockLogsLimit(t *testing.T) {
	for _, server := range []string{realServer, miniServer} {
		s, err := startServer(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		defer s.stop()
		c := s.client(wire{pool: 1, timeout: connectTime})
		defer c.Close()
		for name, script := range map[string]string{"trimmed": zsetTrimmed, "counted": zsetCounted, "list": listWalked} {
			window := 100 * time.Millisecond
			ask := func(request int) int64 {
				n, err := c.Eval(t.Context(), script, []string{name}, window.Microseconds(), 2, request).Int64()
				if err != nil {
					t.Fatalf("%s, %s: %v", server, name, err)
				}
				return n
			}
			start := time.Now()
			first, second, third := ask(1), ask(2), ask(3)
			if time.Since(start) < window && (first != 1 || second != 1 || third != 0) {
				t.Errorf("%s, %s: %d %d %d, want 1 1 0", server, name, first, second, third)
			}
			time.Sleep(window)
			if again := ask(4); again != 1 {
				t.Errorf("%s, %s: %d after the window, want 1", server, name, again)
			}
		}
	}
}

// A wait counts from when the request was due, so that one long command is seen by all that it kept from asking.
func TestBlockCountsFromWhenDue(t *testing.T) {
	s, err := startServer(t.Context(), realServer)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	c := s.client(wire{pool: 2, timeout: connectTime})
	defer c.Close()
	if err := warm(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	const asleep = 100 * time.Millisecond
	slept := make(chan error)
	go func() { slept <- c.Do(t.Context(), "client", "pause", asleep.Milliseconds()).Err() }()
	if err := <-slept; err != nil {
		t.Fatal(err)
	}
	waits, err := readOnTime(t.Context(), time.Now().Add(asleep+20*time.Millisecond), c)
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, w := range waits {
		if w > asleep/4 {
			late++
		}
	}
	if late < int(asleep/otherTime)/2 {
		t.Errorf("%d of %d requests waited above %v, want most of those that were due meanwhile", late, len(waits), asleep/4)
	}
}

func TestBlockEndsWithItsContext(t *testing.T) {
	ends(t, func(ctx context.Context) (Result, error) {
		return Block(ctx, BlockParams{Entries: 1000, Duration: time.Minute, Server: miniServer})
	})
}

func TestBlockCheck(t *testing.T) {
	refused(t, map[string]func(*BlockParams){
		"Entries -1":      func(p *BlockParams) { p.Entries = -1 },
		"Entries 1000001": func(p *BlockParams) { p.Entries = 1_000_001 },
		"Every 1µs":       func(p *BlockParams) { p.Every = time.Microsecond },
		"Others 65":       func(p *BlockParams) { p.Others = 65 },
		"Duration 1ms":    func(p *BlockParams) { p.Duration = time.Millisecond },
		"Duration 1h":     func(p *BlockParams) { p.Duration = time.Hour },
	})
}
