package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// PrecisionParams are the choices of an experiment with numbers. The zero PrecisionParams are 4,000 requests to a bucket
// of 1,000 a second.
type PrecisionParams struct {
	Limit    sluice.Limit // of the token bucket; zero: 1,000/s. Burst 0: 1
	Demand   float64      // of the eager client, in times the limit; 0: 50
	Requests int          // of each client; 0: 4,000
	Seed     uint64       // of the eager client's arrivals, which all variants share

	Server   string       // "redis-server" or a program like it, or "miniredis"; "": redis-server if in PATH, else miniredis
	Progress func(string) // is told a line now and then, on the goroutine of Precision; nil: nobody
}

// Precision runs token buckets on a Redis that keep their numbers in the ways that scripts commonly do, beside this
// module's integers, and counts where their answers differ from the exact ones. Two clients ask: one that comes exactly
// when the next token is there, and is to be admitted each time; and an eager one that comes at random times, many times
// as often as the limit allows.
//
// Time is the script's argument, so nothing sleeps. The Redis is the run's own, and ends with it. The error is one of
// p.Check, of the server, or ctx's.
func Precision(ctx context.Context, p PrecisionParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	bucket, err := tokenbucket.New(p.Limit)
	if err != nil {
		return Result{}, fmt.Errorf("lab: precision: %w", err)
	}
	s, err := startServer(ctx, p.Server)
	if err != nil {
		return Result{}, err
	}
	defer s.stop()
	c := s.client(wire{pool: 2, timeout: startTime})
	defer c.Close()
	polite, eager := p.polite(), p.eager()
	exactly := [2]int64{exact(bucket, polite), exact(bucket, eager)}
	var rows []Row
	for _, k := range keepers(bucket) {
		tell(p.Progress, "%s: %d requests on %s", spaced(k.name), 2*p.Requests, s.what)
		told := func(done int) { tell(p.Progress, "%s: %d of %d", spaced(k.name), done, p.Requests) }
		a, err := k.run(ctx, c, "polite", polite, told)
		if err != nil {
			return Result{}, ended(ctx, err)
		}
		b, err := k.run(ctx, c, "eager", eager, told)
		if err != nil {
			return Result{}, ended(ctx, err)
		}
		rows = append(rows, Row{k.name, Fields{
			{"polite_admitted", a.admitted},
			{"polite_exact", exactly[0]},
			{"eager_admitted", b.admitted},
			{"eager_exact", exactly[1]},
			{"eager_error_percent", 100 * float64(b.admitted-exactly[1]) / float64(exactly[1])},
			{"clock_error_us", max(a.clockError, b.clockError)},
			{"kept_time", b.time},
		}})
		if err := s.check(); err != nil {
			return Result{}, err
		}
	}
	return p.result(s, rows), nil
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p PrecisionParams) Check() error {
	p = p.filled()
	bad := func(format string, args ...any) error { return fmt.Errorf("lab: precision: "+format, args...) }
	if err := p.Limit.Check("lab: precision"); err != nil {
		return err
	}
	if _, err := tokenbucket.New(p.Limit); err != nil {
		return bad("Limit: %w", err)
	}
	period := p.Limit.Period.Microseconds()
	switch span := float64(p.Requests) * float64(period) / float64(p.Limit.Count); {
	case !(p.Demand > 0 && p.Demand <= 1e6):
		return bad("Demand %v: want above 0 and at most 1e6", p.Demand)
	case p.Requests < 1 || p.Requests > mostEntries:
		return bad("Requests %d: want 1 to %d", p.Requests, mostEntries)
	case period%p.Limit.Count != 0:
		return bad("Limit %v: want a whole number of µs between two tokens", p.Limit)
	case span > 1e9*1e6:
		return bad("Requests %d: the last comes after %.0f s; want at most 1e9", p.Requests, span/1e6)
	}
	return nil
}

// filled is p with its defaults.
func (p PrecisionParams) filled() PrecisionParams {
	if p.Limit == (sluice.Limit{}) {
		p.Limit = sluice.Limit{Count: 1000, Period: time.Second}
	}
	if p.Limit.Burst == 0 {
		p.Limit.Burst = 1
	}
	if p.Demand == 0 {
		p.Demand = 50
	}
	if p.Requests == 0 {
		p.Requests = 4000
	}
	return p
}

// result is the rows with what is to be said of them.
func (p *PrecisionParams) result(s *server, rows []Row) Result {
	notes := []string{
		"tostring, the operator .. and cjson write 14 digits. A time in µs has 16, in seconds with a fraction 10 before the point: what is " +
			"kept is up to 50 µs off, either way. A time that lies back is credited again, and one that lies ahead is taken for no time passed, so " +
			"errors don't cancel out: who asks often is given more than the limit.",
		"float: seconds in a double, all digits kept. A double has no 0.001 and, at the seconds of today, steps of 0.24 µs: tokens come to " +
			"0.9999 where they should be 1, and a client that comes exactly when it was told to is refused.",
		"whole_tokens: a part of a token that was regained is thrown away with each request, so who asks often gets none.",
		"integers: whole µs and whole parts of a token below 2^52, where doubles are exact, and written with %.0f: never a difference.",
	}
	if s.proc == nil {
		notes = append([]string{"On miniredis, which prints all digits where Redis prints 14, the faults of decimal text can't be seen. Run this on a redis-server."}, notes...)
	}
	polite := Bars{Title: "Polite client", Caption: "admitted, of a client that comes exactly when the next token is there", Limit: rows[0].Number("polite_exact"), LimitName: "exact"}
	eager := Bars{Title: "Eager client", Caption: fmt.Sprintf("admitted, at %g times the limit", p.Demand), Limit: rows[0].Number("eager_exact"), LimitName: "exact"}
	for _, r := range rows {
		polite.Bars = append(polite.Bars, Bar{r.Name, r.Number("polite_admitted")})
		eager.Bars = append(eager.Bars, Bar{r.Name, r.Number("eager_admitted")})
	}
	return Result{
		Experiment: "precision", Title: "What numbers cost", Server: s.what,
		Intro: []string{fmt.Sprintf("A token bucket of %v on %s, %d requests of each client, with time as an argument. "+
			"kept time is that of the last, as it stands in Redis.",
			p.Limit, s.what, p.Requests)},
		Params:  append(limitFields(p.Limit), Fields{{"demand", p.Demand}, {"requests", p.Requests}, {"seed", p.Seed}}...),
		Results: rows, Notes: notes, Charts: []Chart{polite, eager},
	}
}
