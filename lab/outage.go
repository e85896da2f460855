package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// OutageParams are the choices of an outage experiment. The zero OutageParams are a run of 14 s.
type OutageParams struct {
	Instances int          // members of the fleet; 0: 4. Each has a client and a breaker of its own
	Limit     sluice.Limit // of the whole fleet, as a token bucket; zero: 100/s. Burst 0: Count
	Demand    float64      // requests of the whole fleet, in times the limit; 0: 4
	Skew      []float64    // weights of the instances' parts of the demand, one each; nil: equal
	Bunch     int          // requests that arrive together; 0: 1. The gaps between them are random, from Seed
	Seed      uint64       // of the arrivals, which all variants share

	Schedule               // zero: DefaultSchedule()
	How      string        // what an outage is, one of Hows(); "": "refuse"
	Timeout  time.Duration // of one call to Redis; 0: 50ms

	Server   string       // "redis-server" or a program like it, or "miniredis"; "": redis-server if in PATH, else miniredis
	Progress func(string) // is told a line now and then, on the goroutine of Outage; nil: nobody
}

// Hows returns the forms of an outage. "refuse": connections are reset, and new ones too. "hang": connections stay, and
// what is sent arrives only when Redis is back.
func Hows() []string { return []string{"refuse", "hang"} }

// OutageResult is what an experiment found.
type OutageResult struct {
	Params  OutageParams // as run, with the defaults filled in
	Server  string       // what decided: "redis-server 7.0.15"
	Results []OutageVariant
}

// OutageVariant is what one fleet admitted. Units are those of the limit, one for each request.
type OutageVariant struct {
	Name  string // such as "local, share and carry"
	Mode  string // what decides while Redis is away: local, allow or deny
	Share bool   // local buckets have the limit by the number of instances, not the whole limit
	Carry bool   // the store that takes over starts at the level where the other left off

	Asked       int64
	Admitted    int64
	Bound       float64 // burst + rate·t: what one bucket would admit at most
	Ratio       float64 // Admitted ÷ Bound
	Lost        float64 // what was asked, would have kept the bound, and was denied
	WorstSecond int64   // most admitted in one second after the first
	WorstAt     int     // the first such second; 0: the run has but one
	PerSecond   []int64 // admitted in each second of the run; the last may be shorter

	Shared  int64 // decisions made in Redis; with those below and Errors they add up to Asked
	Local   int64 // decisions made by local buckets
	Assumed int64 // decisions made by allow or deny
	Errors  int64
	Slowest float64 // longest that a caller waited
}

const (
	mostInstances = 64
	mostDemand    = 5000 // requests a second in each variant, so that the load generator is not what is measured
	mostDuration  = time.Hour
)

// Outage runs five fleets of the same kind against one Redis, which it takes away and gives back as p.Schedule says, and
// counts what each admits: with local buckets that have their share of the limit and carry the level over; without
// carrying; with neither; failing open; and failing closed. All meet the same arrivals at the same time.
//
// The run takes p.Duration of real time. The Redis is the run's own, and ends with it. The error is one of p.Check, of
// starting the server, or ctx's.
func Outage(ctx context.Context, p OutageParams) (OutageResult, error) {
	if err := p.Check(); err != nil {
		return OutageResult{}, err
	}
	p = p.filled()
	strategy, err := tokenbucket.New(p.Limit)
	if err != nil {
		return OutageResult{}, err
	}
	server, err := startServer(ctx, p.Server)
	if err != nil {
		return OutageResult{}, err
	}
	defer server.stop()
	way, err := newLink(server.network, server.addr)
	if err != nil {
		return OutageResult{}, fmt.Errorf("lab: %w", err)
	}
	defer way.close()

	var fleets []*fleet
	for _, v := range variants() {
		f, err := newFleet(v, p, strategy, way.addr())
		if err != nil {
			return OutageResult{}, err
		}
		defer f.close()
		fleets = append(fleets, f)
	}
	for _, f := range fleets {
		if err := f.connect(ctx); err != nil {
			return OutageResult{}, err
		}
	}
	if err := p.run(ctx, server, way, fleets); err != nil {
		return OutageResult{}, err
	}
	r := OutageResult{Params: p, Server: server.what}
	for _, f := range fleets {
		r.Results = append(r.Results, f.tally.result(f.variant, p))
	}
	return r, nil
}

// run drives all fleets through the schedule.
func (p *OutageParams) run(ctx context.Context, s *server, way *link, fleets []*fleet) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.tell(fmt.Sprintf("%d fleets of %d instances on %s, %v; Redis away (%s) %s", len(fleets), p.Instances, s.what, p.Duration, p.How, list(p.Outages())))
	start := time.Now()
	var running sync.WaitGroup
	running.Go(func() { p.Schedule.drive(ctx, start, p.How, way) })
	for _, f := range fleets {
		running.Go(func() { f.drive(ctx, start, p) })
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	tick := time.NewTicker(progressTime)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return errors.Join(context.Cause(ctx), s.check())
		case <-tick.C:
			if at := time.Since(start).Round(time.Second); at < p.Duration {
				p.tell(fmt.Sprintf("%v of %v", at, p.Duration))
			}
			if err := s.check(); err != nil {
				cancel(err)
			}
		}
	}
}

// progressTime is the time between two lines of progress.
const progressTime = 5 * time.Second

func (p *OutageParams) tell(line string) {
	if p.Progress != nil {
		p.Progress(line)
	}
}

// Check says what of p can't be run, and its bound; nil if it can.
func (p OutageParams) Check() error {
	p = p.filled()
	bad := func(format string, args ...any) error { return fmt.Errorf("lab: outage: "+format, args...) }
	if err := p.Limit.Check("lab: outage"); err != nil {
		return err
	}
	if _, err := tokenbucket.New(p.Limit); err != nil {
		return bad("Limit: %w", err)
	}
	switch rate := p.rate() * p.Demand; {
	case p.Instances < 1 || p.Instances > mostInstances:
		return bad("Instances %d: want 1 to %d", p.Instances, mostInstances)
	case !(p.Demand > 0):
		return bad("Demand %v: want above 0", p.Demand)
	case !(rate <= mostDemand):
		return bad("Demand %v: %.0f requests a second; want at most %d", p.Demand, rate, mostDemand)
	case p.Bunch < 1 || p.Bunch > 1000:
		return bad("Bunch %d: want 1 to 1000", p.Bunch)
	case p.Skew != nil && len(p.Skew) != p.Instances:
		return bad("Skew: %d weights for %d instances", len(p.Skew), p.Instances)
	case p.Timeout < time.Millisecond:
		return bad("Timeout %v: want at least 1ms", p.Timeout)
	case p.How != "refuse" && p.How != "hang":
		return bad("How %q: want refuse or hang", p.How)
	}
	sum := 0.0
	for _, w := range p.Skew {
		if !(w >= 0 && w <= 1e9) {
			return bad("Skew %v: want weights of 0 to 1e9", p.Skew)
		}
		sum += w
	}
	if p.Skew != nil && sum == 0 {
		return bad("Skew %v: want a weight above 0", p.Skew)
	}
	return p.Schedule.check()
}

// filled is p with its defaults.
func (p OutageParams) filled() OutageParams {
	if p.Instances == 0 {
		p.Instances = 4
	}
	if p.Limit == (sluice.Limit{}) {
		p.Limit = sluice.Limit{Count: 100, Period: time.Second}
	}
	if p.Limit.Burst == 0 {
		p.Limit.Burst = p.Limit.Count
	}
	if p.Demand == 0 {
		p.Demand = 4
	}
	if p.Bunch == 0 {
		p.Bunch = 1
	}
	if p.How == "" {
		p.How = "refuse"
	}
	if p.Timeout == 0 {
		p.Timeout = 50 * time.Millisecond
	}
	if p.Schedule == (Schedule{}) {
		p.Schedule = DefaultSchedule()
	}
	return p
}

// rate is the limit in units a second.
func (p *OutageParams) rate() float64 { return float64(p.Limit.Count) / p.Limit.Period.Seconds() }

// bound is what one bucket admits at most in the run.
func (p *OutageParams) bound() float64 {
	return float64(p.Limit.Burst) + p.rate()*p.Duration.Seconds()
}
