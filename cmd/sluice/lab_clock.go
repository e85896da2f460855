package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

type clock struct {
	Clients  int           `default:"4" placeholder:"N" help:"Processes that share one bucket. Default: ${default}."`
	Limit    string        `default:"10/s" placeholder:"LIMIT" help:"Limit of the bucket, as in a rule file. Default: ${default}."`
	Burst    int64         `placeholder:"N" help:"Burst of the limit. Default: its count."`
	Demand   float64       `default:"4" placeholder:"X" help:"Requests of all clients, in times the limit. Default: ${default}."`
	Skew     time.Duration `default:"2s" placeholder:"D" help:"A clock's greatest error, and the size of a step. Default: ${default}."`
	StepFor  time.Duration `default:"10s" placeholder:"D" help:"A clock that steps is ahead for this long, right for as long, and so on. Default: ${default}."`
	Duration time.Duration `default:"1m" placeholder:"D" help:"Time of the run, in virtual time. Default: ${default}."`
	Seed     uint64        `placeholder:"N" help:"Seed of the times of arrival. Default: 0."`
	output
}

func (clock) Help() string {
	return `Clients share one token bucket, and their clocks, or the server's, are wrong. It prints what is admitted, against what one
budget allows, where the time is

    server     the server's, as this module's store has it
    client     each client's own, as with redis.Options.Clock
    naive      each client's own, in a script that keeps whatever time it is given

and the clocks are right, skewed by a constant, or stepping. It runs in virtual time, at once.

Example:

    sluice lab clock
    sluice lab clock --skew 200ms --clients 16 --csv`
}

// Run runs the experiment and prints it.
func (c clock) Run(ctx context.Context, k *kong.Context, s streams) error {
	err := noZeros(zero{"--clients", c.Clients == 0}, zero{"--demand", c.Demand == 0}, zero{"--skew", c.Skew == 0},
		zero{"--step-for", c.StepFor == 0}, zero{"--duration", c.Duration == 0})
	limit, bad := parseBucket(c.Limit, c.Burst)
	if err == nil {
		err = bad
	}
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: clock: %w", err)}
	}
	p := lab.ClockParams{Clients: c.Clients, Limit: limit, Demand: c.Demand, Skew: c.Skew, StepFor: c.StepFor, Duration: c.Duration, Seed: c.Seed}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(func(string)) (lab.Result, error) { return lab.Clock(ctx, p) })
}
