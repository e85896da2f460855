package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// RaceParams are the choices of a race. The zero RaceParams are 200 callers for one token.
type RaceParams struct {
	Callers int           // that ask at the same moment, once each; 0: 200
	Limit   int64         // tokens in the bucket, which regains one an hour; 0: 1
	RTT     time.Duration // added to each round trip, as a network does; 0: 1ms
	Pool    int           // connections that the callers share; 0: 50
	Timeout time.Duration // of one caller's decision, retries and waiting for a connection included; 0: 10s

	Server   string       // "redis-server" or a program like it, or "miniredis"; "": redis-server if in PATH, else miniredis
	Progress func(string) // is told a line now and then, on the goroutine of Race; nil: nobody
}

const (
	mostCallers = 10_000
	mostTokens  = 100_000
	mostRTT     = 100 * time.Millisecond
	mostPool    = 1_000
	mostTimeout = 10 * time.Minute
)

// Race lets callers ask all at once for tokens of one bucket in Redis (the first requests of all connections leave at the
// same moment, whatever the scheduler does), in three ways: read, compute and write (naive); the
// same under WATCH and MULTI, again where another came between (watch); and this module's store, a script (lua). All
// compute with the same token bucket.
//
// The Redis is the run's own, and ends with it. The error is one of p.Check, of the server, or ctx's.
func Race(ctx context.Context, p RaceParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	bucket, err := tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: p.Limit})
	if err != nil {
		return Result{}, fmt.Errorf("lab: race: %w", err)
	}
	s, err := startServer(ctx, p.Server)
	if err != nil {
		return Result{}, err
	}
	defer s.stop()
	var rows []Row
	for _, r := range racers() {
		tell(p.Progress, "%s: %d callers for %d of %s", r.name, p.Callers, p.Limit, s.what)
		row, err := p.run(ctx, s, r, bucket)
		if err != nil {
			return Result{}, ended(ctx, err)
		}
		rows = append(rows, row)
	}
	return p.result(s, rows), nil
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p RaceParams) Check() error {
	p = p.filled()
	bad := func(format string, args ...any) error { return fmt.Errorf("lab: race: "+format, args...) }
	switch {
	case p.Callers < 1 || p.Callers > mostCallers:
		return bad("Callers %d: want 1 to %d", p.Callers, mostCallers)
	case p.Limit < 1 || p.Limit > mostTokens:
		return bad("Limit %d: want 1 to %d", p.Limit, mostTokens)
	case p.RTT < 0 || p.RTT > mostRTT:
		return bad("RTT %v: want above 0 and at most %v", p.RTT, mostRTT)
	case p.Pool < 1 || p.Pool > mostPool:
		return bad("Pool %d: want 1 to %d", p.Pool, mostPool)
	case p.Timeout < time.Millisecond || p.Timeout > mostTimeout:
		return bad("Timeout %v: want 1ms to %v", p.Timeout, mostTimeout)
	}
	return nil
}

// filled is p with its defaults.
func (p RaceParams) filled() RaceParams {
	if p.Callers == 0 {
		p.Callers = 200
	}
	if p.Limit == 0 {
		p.Limit = 1
	}
	if p.RTT == 0 {
		p.RTT = time.Millisecond
	}
	if p.Pool == 0 {
		p.Pool = 50
	}
	if p.Timeout == 0 {
		p.Timeout = 10 * time.Second
	}
	return p
}

// result is the rows with what is to be said of them.
func (p *RaceParams) result(s *server, rows []Row) Result {
	intro := fmt.Sprintf("%d callers ask at once, on %s, over %d connections; tokens in the bucket: %d. Each round trip takes %v more.",
		p.Callers, s.what, p.Pool, p.Limit, p.RTT)
	notes := []string{
		"naive: a round trip lies between a caller's read and its write, and all who read meanwhile see the same tokens and " +
			"take them again. The first requests of all connections leave at the same moment, so these callers have all read before any of " +
			"them writes.",
		"watch: exact, since EXEC fails where the key has changed since WATCH, and who fails begins again. Nobody has a turn, " +
			"so each token that is taken sends all who were at it back: more tokens, as with --limit 100, make more retries.",
		"lua: exact, since no command runs while a script does. One command and one round trip, whoever else asks.",
	}
	if s.proc == nil {
		notes = append(notes, "miniredis runs in this process, so client CPU is its CPU as well.")
	}
	admitted := Bars{Title: "Admitted", Caption: fmt.Sprintf("by %d callers at once", p.Callers), Limit: float64(p.Limit), LimitName: "limit"}
	commands := Bars{Title: "Commands per decision", Caption: "that the client sent, retries included"}
	slowest := Bars{Title: "p99", Caption: "of the time that a caller waited for its decision", Unit: "ms"}
	for _, r := range rows {
		admitted.Bars = append(admitted.Bars, Bar{r.Name, r.Number("admitted")})
		commands.Bars = append(commands.Bars, Bar{r.Name, r.Number("commands_per_decision")})
		slowest.Bars = append(slowest.Bars, Bar{r.Name, r.Number("p99_ms")})
	}
	return Result{
		Experiment: "race", Title: "Read, compute, write: what many callers make of one budget", Server: s.what,
		Intro:   []string{intro},
		Params:  Fields{{"callers", p.Callers}, {"limit", p.Limit}, {"rtt_ms", ms(p.RTT)}, {"pool", p.Pool}, {"timeout_s", p.Timeout.Seconds()}},
		Results: rows, Notes: notes, Charts: []Chart{admitted, commands, slowest},
	}
}
