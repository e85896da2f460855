package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// TTLParams are the choices of an experiment with expiries. The zero TTLParams are a day with 100,000 visitors, in virtual
// time.
type TTLParams struct {
	Limit    sluice.Limit  // of each subject, as a token bucket; zero: 10/h. Burst 0: Count
	Short    time.Duration // a fixed expiry; 0: 60s
	Long     time.Duration // another; 0: 24h
	Pause    time.Duration // of the client that asks for a whole burst, pauses, and so on; 0: Short and a second
	Visitors int           // that come once, at random times; 0: 100,000
	Requests int           // of a visitor, a second apart; 0: 3
	Duration time.Duration // of the run; 0: 24h
	Seed     uint64        // of the visitors

	Server   string       // whose memory counts: "redis-server" or a program like it, or "miniredis", which does not tell; "": redis-server if in PATH, else miniredis
	Progress func(string) // is told a line now and then, on the goroutine of TTL; nil: nobody
}

const (
	mostVisitors = 1_000_000
	mostRequests = 100
	mostTTL      = 366 * 24 * time.Hour
)

// TTL gives keys an expiry in three ways, and counts what a client is admitted that knows the expiry, and the keys that
// stay of visitors who never come back. The ways are a short fixed time, a long one, and the time to full, as this
// module's store has it.
//
// All happens in virtual time; what a key takes is measured in a Redis of the run's own. The error is one of p.Check,
// of the server, or ctx's.
func TTL(ctx context.Context, p TTLParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	bucket, err := tokenbucket.New(p.Limit)
	if err != nil {
		return Result{}, fmt.Errorf("lab: ttl: %w", err)
	}
	s, err := startServer(ctx, p.Server)
	if err != nil {
		return Result{}, err
	}
	defer s.stop()
	bytes, err := keyBytes(ctx, s, bucket)
	if err != nil {
		return Result{}, ended(ctx, err)
	}
	visits := p.visits()
	var rows []Row
	for _, e := range p.expiries() {
		tell(p.Progress, "%s: %d visitors in %s", spaced(e.name), p.Visitors, withoutZeros(p.Duration))
		asked, admitted, refilled := p.spend(e, bucket)
		keys, err := p.keys(ctx, e, bucket, visits)
		if err != nil {
			return Result{}, err
		}
		rows = append(rows, Row{e.name, Fields{
			{"asked", asked},
			{"admitted", admitted},
			{"bound", p.bound()},
			{"of_bound", float64(admitted) / p.bound()},
			{"refilled_early", refilled},
			{"keys_mean", keys.mean},
			{"keys_most", keys.most},
			{"keys_at_end", keys.end},
			{"key_bytes", bytes},
			{"bytes_most", float64(keys.most) * bytes},
		}})
	}
	return p.result(s, rows, bytes), nil
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p TTLParams) Check() error {
	p = p.filled()
	bad := func(format string, args ...any) error { return fmt.Errorf("lab: ttl: "+format, args...) }
	if err := p.Limit.Check("lab: ttl"); err != nil {
		return err
	}
	if _, err := tokenbucket.New(p.Limit); err != nil {
		return bad("Limit: %w", err)
	}
	asks := float64(p.Limit.Burst) * float64(p.Duration) / float64(p.Pause)
	switch {
	case p.Short < time.Millisecond || p.Short > mostTTL:
		return bad("Short %v: want 1ms to %v", p.Short, mostTTL)
	case p.Long < time.Millisecond || p.Long > mostTTL:
		return bad("Long %v: want 1ms to %v", p.Long, mostTTL)
	case p.Pause < time.Millisecond || p.Pause > mostTTL:
		return bad("Pause %v: want 1ms to %v", p.Pause, mostTTL)
	case p.Visitors < 1 || p.Visitors > mostVisitors:
		return bad("Visitors %d: want 1 to %d", p.Visitors, mostVisitors)
	case p.Requests < 1 || p.Requests > mostRequests:
		return bad("Requests %d: want 1 to %d", p.Requests, mostRequests)
	case p.Duration <= 0 || p.Duration > mostTTL:
		return bad("Duration %v: want above 0 and at most %v", p.Duration, mostTTL)
	case float64(p.Visitors)*float64(p.Requests) > mostEvents:
		return bad("Requests %d: %d of all visitors; want at most %d", p.Requests, p.Visitors*p.Requests, mostEvents)
	case asks > mostEvents:
		return bad("Pause %v: %.0f requests; want at most %d", p.Pause, asks, mostEvents)
	}
	return nil
}

// filled is p with its defaults.
func (p TTLParams) filled() TTLParams {
	p.Limit = filledLimit(p.Limit, sluice.Limit{Count: 10, Period: time.Hour})
	if p.Short == 0 {
		p.Short = time.Minute
	}
	if p.Long == 0 {
		p.Long = 24 * time.Hour
	}
	if p.Pause == 0 {
		p.Pause = p.Short + time.Second
	}
	if p.Visitors == 0 {
		p.Visitors = 100_000
	}
	if p.Requests == 0 {
		p.Requests = 3
	}
	if p.Duration == 0 {
		p.Duration = 24 * time.Hour
	}
	return p
}

// bound is what one bucket admits at most in the run.
func (p *TTLParams) bound() float64 { return limitBound(p.Limit, p.Duration) }

// result is the rows with what is to be said of them.
func (p *TTLParams) result(s *server, rows []Row, bytes float64) Result {
	notes := []string{
		fmt.Sprintf("A key that expires before its bucket is full is a bucket refilled early: who waits %s has a whole burst again. "+
			"A key that stays longer than that is a dead key: it says no more than a key that is not there.", withoutZeros(p.Short)),
		"time_to_full is both at once: exact, and the fewest keys that can be. The store gives each write the time after which " +
			"the state is as good as none, and a denial writes nothing.",
	}
	of := fmt.Sprintf("A key takes %.0f bytes on %s (MEMORY USAGE, without its place in the table of expiries).", bytes, s.what)
	if s.proc == nil {
		of = "What a key takes is not known: miniredis does not say."
	}
	admitted := Bars{Title: "Admitted", Caption: fmt.Sprintf("to one client, in %s", withoutZeros(p.Duration)), Limit: p.bound(), LimitName: "bound", Log: true}
	keys := Bars{Title: "Keys at most", Caption: fmt.Sprintf("of %d visitors", p.Visitors), Log: true}
	for _, r := range rows {
		admitted.Bars = append(admitted.Bars, Bar{r.Name, r.Number("admitted")})
		keys.Bars = append(keys.Bars, Bar{r.Name, r.Number("keys_most")})
	}
	return Result{
		Experiment: "ttl", Title: "When may a key expire", Server: s.what,
		Intro: []string{
			fmt.Sprintf("%v for each subject, for %s of virtual time. One client asks for %d, waits %s, and so on; %d visitors ask %d times "+
				"each and never come back. Short is %s, long is %s.",
				p.Limit, withoutZeros(p.Duration), p.Limit.Burst, withoutZeros(p.Pause), p.Visitors, p.Requests, withoutZeros(p.Short), withoutZeros(p.Long)),
			of,
		},
		Params: append(limitFields(p.Limit), Fields{{"short_s", p.Short.Seconds()}, {"long_s", p.Long.Seconds()}, {"pause_s", p.Pause.Seconds()},
			{"visitors", p.Visitors}, {"requests", p.Requests}, {"duration_s", p.Duration.Seconds()}, {"seed", p.Seed}}...),
		Results: rows, Notes: notes, Charts: []Chart{admitted, keys},
	}
}
