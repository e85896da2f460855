package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// BlockParams are the choices of a block experiment. The zero BlockParams are a run of about 10 s.
type BlockParams struct {
	Entries  int           // requests that the log holds, which is the limit as well; 0: 100,000
	Every    time.Duration // between two decisions of the one client that is watched; 0: 200ms
	Others   int           // clients that read a key each millisecond meanwhile; 0: 4
	Duration time.Duration // of each variant, in real time; 0: 1s

	Server   string       // "redis-server" or a program like it, or "miniredis"; "": redis-server if in PATH, else miniredis
	Progress func(string) // is told a line now and then, on the goroutine of Block; nil: nobody
}

const (
	mostEntries = 1_000_000
	mostOthers  = 64
	mostBlock   = time.Minute

	otherTime  = time.Millisecond // between two requests of one of the others
	blockTime  = time.Minute      // in which the log's entries lie
	slowerThan = 5 * time.Millisecond
)

// Block has one client decide a few times a second, in several ways, and measures how long other clients of the same
// Redis wait for a plain GET meanwhile. The ways are this module's token bucket, and sliding logs of p.Entries requests:
// in a sorted set that is trimmed with each decision; in one that was left alone until all of it is to be trimmed; in
// one whose window is fetched and counted; and in a list that a script walks.
//
// A wait is counted from when the request was due, also where the client could not send it because an earlier one
// hung: that is what a service with many callers sees.
func Block(ctx context.Context, p BlockParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	bucket, err := tokenbucket.New(sluice.Limit{Count: int64(p.Entries), Period: blockTime, Burst: int64(p.Entries)})
	if err != nil {
		return Result{}, fmt.Errorf("lab: block: %w", err)
	}
	s, err := startServer(ctx, p.Server)
	if err != nil {
		return Result{}, err
	}
	defer s.stop()
	var rows []Row
	for _, v := range blockers(bucket) {
		tell(p.Progress, "%s, for %v, on %s", spaced(v.name), p.Duration, s.what)
		row, err := p.run(ctx, s, v)
		if err != nil {
			return Result{}, ended(ctx, err)
		}
		rows = append(rows, row)
	}
	return p.result(s, rows), nil
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p BlockParams) Check() error {
	p = p.filled()
	bad := func(format string, args ...any) error { return fmt.Errorf("lab: block: "+format, args...) }
	switch {
	case p.Entries < 1 || p.Entries > mostEntries:
		return bad("Entries %d: want 1 to %d", p.Entries, mostEntries)
	case p.Every < time.Millisecond || p.Every > mostBlock:
		return bad("Every %v: want 1ms to %v", p.Every, mostBlock)
	case p.Others < 1 || p.Others > mostOthers:
		return bad("Others %d: want 1 to %d", p.Others, mostOthers)
	case p.Duration < 10*time.Millisecond || p.Duration > mostBlock:
		return bad("Duration %v: want 10ms to %v", p.Duration, mostBlock)
	}
	return nil
}

// filled is p with its defaults.
func (p BlockParams) filled() BlockParams {
	if p.Entries == 0 {
		p.Entries = 100_000
	}
	if p.Every == 0 {
		p.Every = 200 * time.Millisecond
	}
	if p.Others == 0 {
		p.Others = 4
	}
	if p.Duration == 0 {
		p.Duration = time.Second
	}
	return p
}

// result is the rows with what is to be said of them.
func (p *BlockParams) result(s *server, rows []Row) Result {
	notes := []string{
		"alone is what the clock of the clients adds: they are woken up to 1 ms late. token_bucket decides as often as the logs do, " +
			"on a server that has cooled down in between; token_bucket_1000_per_s decides a thousand times a second.",
		"Redis runs one command at a time, and a script is one command: what it takes, everybody waits. The others' p99 and " +
			"greatest wait are those of clients that have nothing to do with the limit.",
		"log_zset is the textbook's log at its best, trimmed a little each time: quick, at many bytes for each request of " +
			"the window. log_zset_pause is the same log after a quiet time, when one decision trims all of it.",
	}
	if s.proc == nil {
		notes = append(notes, "miniredis runs in this process, and its Lua is slower than Redis's; it does not say what a script takes.")
	}
	server := Bars{Title: "Server time of a decision", Caption: "in which no other client is served", Unit: "µs", Log: true}
	p99 := Bars{Title: "Wait of the others, p99", Caption: "for a GET, from when it was due", Unit: "ms", Log: true}
	most := Bars{Title: "Wait of the others, greatest", Caption: "for a GET, from when it was due", Unit: "ms", Log: true}
	for _, r := range rows {
		server.Bars = append(server.Bars, Bar{r.Name, r.Number("server_us_per_decision")})
		p99.Bars = append(p99.Bars, Bar{r.Name, r.Number("others_p99_ms")})
		most.Bars = append(most.Bars, Bar{r.Name, r.Number("others_max_ms")})
	}
	server.Bars = server.Bars[1:] // alone decides nothing
	charts := []Chart{server, p99, most}
	if s.proc == nil {
		charts = charts[1:]
	}
	return Result{
		Experiment: "block", Title: "A slow script stops everyone", Server: s.what,
		Intro: []string{fmt.Sprintf("One client decides every %v, on %s; %d others read a key each millisecond. The logs hold %d requests.",
			p.Every, s.what, p.Others, p.Entries)},
		Params:  Fields{{"entries", p.Entries}, {"every_ms", ms(p.Every)}, {"others", p.Others}, {"duration_s", p.Duration.Seconds()}},
		Results: rows, Notes: notes, Charts: charts,
	}
}
