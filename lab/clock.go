package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// ClockParams are the choices of a clock experiment. The zero ClockParams are four clients, a minute and clocks that
// lie up to 2 s apart from the truth, in virtual time.
type ClockParams struct {
	Clients  int           // processes that share one bucket, each with a clock of its own; 0: 4
	Limit    sluice.Limit  // of the bucket; zero: 10/s. Burst 0: Count
	Demand   float64       // requests of all clients, in times the limit; 0: 4
	Skew     time.Duration // a clock's greatest error, and the size of a step; 0: 2s
	StepFor  time.Duration // a clock that steps does so forward for this long, back for as long, and so on; 0: 10s
	Duration time.Duration // of the run; 0: 1m
	Seed     uint64        // of the arrivals, which all variants share
}

const (
	mostClients = 64
	mostSkew    = 24 * time.Hour
	mostEvents  = 10_000_000
)

// Clock has clients spend one token bucket by clocks that are right, wrong, and stepping, and counts what is admitted
// against what one budget allows. It compares deciding by the server's clock, as this module's store does unless it is
// told otherwise; by the clients' clocks, as it does with Options.Clock; and by the clients' clocks in the way that is
// found in many scripts (naive), which stores a time that lies back and so credits the same time again.
//
// All decisions are made in virtual time. The error is p.Check's, or ctx's.
func Clock(ctx context.Context, p ClockParams) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p = p.filled()
	bucket, err := tokenbucket.New(p.Limit)
	if err != nil {
		return Result{}, fmt.Errorf("lab: clock: %w", err)
	}
	asks := p.arrivals()
	var one int64
	var rows []Row
	for _, v := range timings() {
		t, err := p.run(ctx, v, bucket, asks)
		if err != nil {
			return Result{}, err
		}
		if one == 0 {
			one = t.admitted // the first is the server's clock, and right
		}
		rows = append(rows, Row{v.name, Fields{
			{"asked", len(asks)},
			{"admitted", t.admitted},
			{"bound", p.bound()},
			{"of_one_budget", float64(t.admitted) / float64(max(1, one))},
			{"most_in_1s", t.mostIn(time.Second)},
			{"fairness", t.fairness()},
			{"longest_without_s", t.longestWithout(p.Duration).Seconds()},
		}})
	}
	return p.result(rows), nil
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p ClockParams) Check() error {
	p = p.filled()
	bad := func(format string, args ...any) error { return fmt.Errorf("lab: clock: "+format, args...) }
	if err := p.Limit.Check("lab: clock"); err != nil {
		return err
	}
	if _, err := tokenbucket.New(p.Limit); err != nil {
		return bad("Limit: %w", err)
	}
	switch events := limitRate(p.Limit) * p.Demand * p.Duration.Seconds(); {
	case p.Clients < 2 || p.Clients > mostClients:
		return bad("Clients %d: want 2 to %d", p.Clients, mostClients)
	case !(p.Demand > 0):
		return bad("Demand %v: want above 0", p.Demand)
	case p.Skew < 0 || p.Skew > mostSkew:
		return bad("Skew %v: want above 0 and at most %v", p.Skew, mostSkew)
	case p.StepFor < time.Millisecond:
		return bad("StepFor %v: want at least 1ms", p.StepFor)
	case p.Duration <= 0 || p.Duration > mostSkew:
		return bad("Duration %v: want above 0 and at most %v", p.Duration, mostSkew)
	case !(events <= mostEvents):
		return bad("Demand %v: %.0f requests; want at most %d", p.Demand, events, mostEvents)
	}
	return nil
}

// filled is p with its defaults.
func (p ClockParams) filled() ClockParams {
	if p.Clients == 0 {
		p.Clients = 4
	}
	p.Limit = filledLimit(p.Limit, sluice.Limit{Count: 10, Period: time.Second})
	if p.Demand == 0 {
		p.Demand = 4
	}
	if p.Skew == 0 {
		p.Skew = 2 * time.Second
	}
	if p.StepFor == 0 {
		p.StepFor = 10 * time.Second
	}
	if p.Duration == 0 {
		p.Duration = time.Minute
	}
	return p
}

// bound is what one bucket admits at most in the run.
func (p *ClockParams) bound() float64 { return limitBound(p.Limit, p.Duration) }

// limitBound is what one token bucket admits at most in a time.
func limitBound(l sluice.Limit, d time.Duration) float64 {
	return float64(l.Burst) + limitRate(l)*d.Seconds()
}

// result is the rows with what is to be said of them.
func (p *ClockParams) result(rows []Row) Result {
	admitted := Bars{Title: "Admitted", Caption: fmt.Sprintf("in %s, of %v", withoutZeros(p.Duration), p.Limit), Limit: p.bound(), LimitName: "one budget"}
	without := Bars{Title: "Longest time without one admitted", Unit: "s"}
	for _, r := range rows {
		admitted.Bars = append(admitted.Bars, Bar{r.Name, r.Number("admitted")})
		without.Bars = append(without.Bars, Bar{r.Name, r.Number("longest_without_s")})
	}
	return Result{
		Experiment: "clock", Title: "Whose clock decides",
		Intro: []string{fmt.Sprintf("%d clients share a token bucket of %v and ask %g times that for %s, in virtual time. Clocks err by up to %s; "+
			"a clock that steps does so each %s.", p.Clients, p.Limit, p.Demand, withoutZeros(p.Duration), withoutZeros(p.Skew), withoutZeros(p.StepFor))},
		Params: append(limitFields(p.Limit), Fields{{"clients", p.Clients}, {"demand", p.Demand}, {"skew_s", p.Skew.Seconds()},
			{"step_for_s", p.StepFor.Seconds()}, {"duration_s", p.Duration.Seconds()}, {"seed", p.Seed}}...),
		Results: rows,
		Notes: []string{
			"fairness is Jain's index of what each client was admitted: 1 if all had the same, 1 by the number of clients if one had all.",
			"server: the clients' clocks do not matter. server_steps: a server's clock that steps forward, as after a failover to a " +
				"machine that is ahead, gives the time that it skipped, one burst at most; stepped back, it gives nothing until it is where it was.",
			"client: the clock that is furthest ahead leads, and the others find that no time has passed. Constant errors give what lies " +
				"between the clocks once, one burst at most, and then what one budget allows, though unfairly shared; each step forward is " +
				"a gift as above. A clock that is ahead and leaves makes the others wait until they are where it was.",
			"naive: the time that is stored goes back with each client that is behind, and the next one ahead is credited the " +
				"difference again: the limit is gone as long as the clocks differ.",
		},
		Charts: []Chart{admitted, without},
	}
}
