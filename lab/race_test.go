package lab

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// The naive client passes the limit, and the other two keep it, at the price that each has.
func TestRace(t *testing.T) {
	for _, c := range []struct {
		server string
		limit  int64
	}{{realServer, 1}, {realServer, 4}, {miniServer, 1}} {
		t.Run(c.server, func(t *testing.T) {
			var lines []string
			p := RaceParams{Callers: 80, Limit: c.limit, Pool: 20, RTT: 3 * time.Millisecond, Server: c.server, Timeout: time.Minute,
				Progress: func(line string) { lines = append(lines, line) }}
			r, err := Race(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			formed(t, r, "race", "naive", "watch", "lua")
			if !strings.HasPrefix(r.Server, c.server) || len(lines) < 3 || !strings.Contains(lines[0], r.Server) {
				t.Errorf("server %q, progress %q", r.Server, lines)
			}
			naive, watch, lua := r.Row("naive"), r.Row("watch"), r.Row("lua")
			if n := naive.Number("admitted"); n <= 10 { // of the 20 that read first
				t.Errorf("naive admits %v of %d: want far more", n, c.limit)
			}
			for _, row := range []Row{watch, lua} {
				if n := row.Number("admitted"); n != float64(c.limit) {
					t.Errorf("%s admits %v, want %d", row.Name, n, c.limit)
				}
			}
			for _, row := range r.Results {
				if row.Number("decisions") != 80 || row.Number("failed_calls") != 0 || row.Number("limit") != float64(c.limit) {
					t.Errorf("%+v: want 80 decisions", row)
				}
				for _, figure := range []string{"bytes_per_decision", "p99_ms", "pool_waits", "decisions_per_second"} {
					if !(row.Number(figure) > 0) {
						t.Errorf("%s: %s is %v", row.Name, figure, row.Number(figure))
					}
				}
			}
			if lua.Number("commands_per_decision") != 1 || lua.Number("round_trips_per_decision") != 1 || lua.Number("retries_per_decision") != 0 {
				t.Errorf("lua: %+v: want one command, no retry", lua)
			}
			if n := naive.Number("commands_per_decision"); n <= 1 || n > 2 {
				t.Errorf("naive: %v commands, want above 1 and at most 2", n)
			}
			if n := watch.Number("commands_per_decision"); n < 3 {
				t.Errorf("watch: %v commands, want at least WATCH, HMGET and UNWATCH", n)
			}
			if n := watch.Number("retries_per_decision"); c.limit > 1 && !(n > 0) {
				t.Errorf("watch: %v retries, want some", n)
			}
		})
	}
}

// What the client counts as commands is what the server was sent.
func TestRaceCountsCommands(t *testing.T) {
	s, err := startServer(t.Context(), realServer)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	bucket := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: 5}))
	p := RaceParams{Callers: 30, Limit: 5, Pool: 10}.filled()
	row, err := p.run(t.Context(), s, racer{"watch", watch}, bucket)
	if err != nil {
		t.Fatal(err)
	}
	c := s.client(wire{pool: 1, timeout: connectTime})
	defer c.Close()
	calls := int64(-1) // the HMGET of the script that was made known
	for _, name := range []string{"watch", "unwatch", "hmget", "multi", "hset", "exec"} {
		calls += int64(statsOf(t.Context(), s, c, name).calls)
	}
	discarded := 30 * row.Number("retries_per_decision") // an HSET each, which the server did not call
	if got := 30 * row.Number("commands_per_decision"); math.Abs(got-float64(calls)-discarded) > 1e-6 {
		t.Errorf("%v commands counted, %d at the server and %v discarded there", got, calls, discarded)
	}
}

// A caller that is not answered in time has failed, and is no decision.
func TestRaceFailedCalls(t *testing.T) {
	r, err := Race(t.Context(), RaceParams{Callers: 5, RTT: 50 * time.Millisecond, Timeout: time.Millisecond, Server: miniServer})
	if err != nil {
		t.Fatal(err)
	}
	formed(t, r, "race", "naive", "watch", "lua")
	for _, row := range r.Results {
		if row.Number("failed_calls") != 5 || row.Number("decisions") != 0 || row.Number("admitted") != 0 {
			t.Errorf("%+v: want 5 failed calls", row)
		}
	}
}

func TestRaceEndsWithItsContext(t *testing.T) {
	ends(t, func(ctx context.Context) (Result, error) {
		return Race(ctx, RaceParams{Callers: 2000, Limit: 2000, Pool: 10, RTT: 10 * time.Millisecond})
	})
}

func TestRaceCheck(t *testing.T) {
	refused(t, map[string]func(*RaceParams){
		"Callers -1":    func(p *RaceParams) { p.Callers = -1 },
		"Callers 10001": func(p *RaceParams) { p.Callers = 10_001 },
		"Limit -1":      func(p *RaceParams) { p.Limit = -1 },
		"Limit 100001":  func(p *RaceParams) { p.Limit = 100_001 },
		"RTT 1s":        func(p *RaceParams) { p.RTT = time.Second },
		"RTT -1ns":      func(p *RaceParams) { p.RTT = -1 },
		"Pool -1":       func(p *RaceParams) { p.Pool = -1 },
		"Timeout 1µs":   func(p *RaceParams) { p.Timeout = time.Microsecond },
	})
	// The largest bucket can be made.
	if _, err := tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: mostTokens}); err != nil {
		t.Error(err)
	}
}
