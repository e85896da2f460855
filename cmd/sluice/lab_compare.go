package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
	"github.com/sluice-go/sluice/lab/sim"
)

type compare struct {
	contested
	Arrivals string         `enum:"constant,poisson,bursts,on-off,boundary,diurnal" default:"poisson" help:"Shape of the arrivals: ${enum}. Default: ${default}."`
	Rate     *float64       `placeholder:"X" help:"Requests a second: on average; of on-off and boundary while there are any. Default: 1.5 times the limit's."`
	Size     *int           `placeholder:"N" help:"bursts: requests at once. Default: twice the limit's count."`
	Every    *time.Duration `placeholder:"D" help:"bursts: from one to the next. Default: what makes the rate."`
	On       *time.Duration `placeholder:"D" help:"on-off: time with requests. Default: two periods."`
	Off      *time.Duration `placeholder:"D" help:"on-off: time without. Default: two periods."`
	Around   *time.Duration `placeholder:"D" help:"boundary: time on both sides of a window's end. Default: a sixth of the period."`
	Peak     float64        `default:"2" placeholder:"X" help:"diurnal: the highest rate, 1 to 2 times the average. Default: ${default}."`
	Day      *time.Duration `placeholder:"D" help:"diurnal: from one low to the next. Default: the duration."`
	Trace    string         `placeholder:"FILE" help:"Recorded arrivals instead; - is standard input."`
	Format   string         `enum:"csv,nginx,envoy" default:"csv" help:"Of the trace. csv: time,subject,cost. nginx: combined access log. envoy: default access log. Default: ${default}."`
	Subjects int            `default:"1" placeholder:"N" help:"How many ask. Default: ${default}."`
	Skew     float64        `placeholder:"S" help:"Zipf's exponent of their shares: 1 gives the second half of what the first has. Default: 0, all the same."`
	OneKey   bool           `help:"All subjects share one limit. Otherwise each has its own."`
	Cost     int64          `default:"1" placeholder:"N" help:"Units of a request. Default: ${default}."`
	MostCost int64          `placeholder:"N" help:"Costs are spread evenly from --cost to this. Default: --cost."`
	Retry    string         `enum:"none,polite,rude,backoff" default:"none" help:"Who is denied goes away (none), comes back after Retry-After (polite), at once (rude), or backs off. Default: ${default}."`
	Pause    *time.Duration `placeholder:"D" help:"rude: a round trip, default 10ms. backoff: the first range, default 100ms."`
	Tries    int            `default:"10" placeholder:"N" help:"Most tries for one request. Default: ${default}."`
	Duration *time.Duration `placeholder:"D" help:"Virtual time of the run. Default: 60 periods; of a trace its own."`
	Seed     uint64         `placeholder:"N" help:"Seed of all that is random. Default: 0."`
	output
}

func (compare) Help() string {
	return `All algorithms meet the same requests under the same limit, in virtual time: an hour takes a second or so. Beside
them runs the exact sliding log, an oracle. It prints what each admitted, what requests waited, the largest count in any
period, fairness between subjects, capacity that was wasted, retries, and what a decision costs in Redis.

Example:

    sluice lab compare --report out.html
    sluice lab compare --limit 100/min --arrivals on-off --rate 5 --retry polite
    sluice lab compare --subjects 50 --skew 1 --one-key --rate 40 --json
    sluice lab compare --trace access.log --format nginx --limit 10/s`
}

// Run runs the experiment and prints it.
func (c compare) Run(ctx context.Context, k *kong.Context, s streams) error {
	p, err := c.params()
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: compare: %w", err)}
	}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.Compare(ctx, p)
	})
}

// params are the flags as the experiment has them. A flag that is given as 0 is wrong, not left out.
func (c compare) params() (lab.CompareParams, error) {
	limit, err := c.limit("10/s")
	if err != nil {
		return lab.CompareParams{}, err
	}
	p := lab.CompareParams{
		Limit: limit, Algorithms: c.Algorithms, Shape: c.Arrivals, Skew: c.Skew, OneKey: c.OneKey, MostCost: c.MostCost, Retry: c.Retry, Seed: c.Seed,
	}
	if err := errors.Join(
		given("--rate", c.Rate, &p.Rate), given("--size", c.Size, &p.Size), given("--every", c.Every, &p.Every), given("--on", c.On, &p.On),
		given("--off", c.Off, &p.Off), given("--around", c.Around, &p.Around), given("--peak", &c.Peak, &p.Peak), given("--day", c.Day, &p.Day),
		given("--subjects", &c.Subjects, &p.Subjects), given("--cost", &c.Cost, &p.Cost),
		given("--pause", c.Pause, &p.Pause), given("--tries", &c.Tries, &p.Tries), given("--duration", c.Duration, &p.Duration),
	); err != nil {
		return lab.CompareParams{}, err
	}
	if c.Trace != "" {
		trace, err := readTrace(c.Trace, c.Format)
		if err != nil {
			return lab.CompareParams{}, fmt.Errorf("--trace: %w", err)
		}
		p.Shape, p.Trace = "trace", &trace
	}
	return p, nil
}

func readTrace(name, format string) (sim.Trace, error) {
	if name == "-" {
		return sim.ReadTrace(os.Stdin, format)
	}
	f, err := os.Open(name)
	if err != nil {
		return sim.Trace{}, err
	}
	defer f.Close()
	return sim.ReadTrace(f, format)
}
