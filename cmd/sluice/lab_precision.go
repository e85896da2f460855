package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

type precision struct {
	Limit    string  `default:"1000/s" placeholder:"LIMIT" help:"Limit of the bucket, as in a rule file. Default: ${default}."`
	Burst    int64   `default:"1" placeholder:"N" help:"Burst of the limit. Default: ${default}."`
	Demand   float64 `default:"50" placeholder:"X" help:"Requests of the eager client, in times the limit. Default: ${default}."`
	Requests int     `default:"4000" placeholder:"N" help:"Requests of each client. Default: ${default}."`
	Seed     uint64  `placeholder:"N" help:"Seed of the eager client's times. Default: 0."`
	Server   string  `placeholder:"NAME" help:"redis-server, a program like it, or miniredis, which hides the faults. Default: redis-server if it is in PATH, else miniredis."`
	output
}

func (precision) Help() string {
	return `Token buckets run on a private Redis and keep their numbers as scripts commonly do:

    integers       this module's store
    float          seconds and tokens in doubles, all digits kept
    tostring       µs and tokens through tostring, which keeps 14 digits
    concatenated   both in one string, by the operator .., which does so too
    cjson          both in JSON, which does so too
    whole_tokens   tokens rounded down at each request

A polite client comes exactly when the next token is there; an eager one at random times, far too often. It prints what
each is admitted, against the exact count. Time is the scripts' argument, so nothing sleeps.

Example:

    sluice lab precision
    sluice lab precision --limit 100/s --burst 10 --json`
}

// Run runs the experiment and prints it.
func (c precision) Run(ctx context.Context, k *kong.Context, s streams) error {
	err := noZeros(zero{"--burst", c.Burst == 0}, zero{"--demand", c.Demand == 0}, zero{"--requests", c.Requests == 0})
	limit, bad := parseBucket(c.Limit, c.Burst)
	if err == nil {
		err = bad
	}
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: precision: %w", err)}
	}
	p := lab.PrecisionParams{Limit: limit, Demand: c.Demand, Requests: c.Requests, Seed: c.Seed, Server: c.Server}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.Precision(ctx, p)
	})
}
