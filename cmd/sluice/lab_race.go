package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

type race struct {
	Callers int           `default:"200" placeholder:"N" help:"Callers that ask at the same moment, once each, at most 10000. Default: ${default}."`
	Limit   int64         `default:"1" placeholder:"N" help:"Tokens in the bucket. Default: ${default}."`
	RTT     time.Duration `name:"rtt" default:"1ms" placeholder:"D" help:"Added to each round trip, as a network does. Default: ${default}."`
	Pool    int           `default:"50" placeholder:"N" help:"Connections that the callers share. Default: ${default}."`
	Timeout time.Duration `default:"10s" placeholder:"D" help:"Of one caller's decision, retries included; later is a failed call. Default: ${default}."`
	Server  string        `placeholder:"NAME" help:"redis-server, a program like it, or miniredis. Default: redis-server if it is in PATH, else miniredis."`
	output
}

func (race) Help() string {
	return `Many callers ask all at once for tokens of one bucket in a private Redis, in three ways that compute the same:

    naive   read the state, compute, write it back
    watch   the same under WATCH and MULTI, begun again where another came between
    lua     this module's store: a script

It prints what each admitted, and what a decision cost: commands, round trips, retries, bytes, CPU of the client, waits for
a connection, and time.

Example:

    sluice lab race
    sluice lab race --callers 1000 --limit 100
    sluice lab race --callers 10000 --server miniredis --json`
}

// Run runs the experiment and prints it.
func (c race) Run(ctx context.Context, k *kong.Context, s streams) error {
	err := noZeros(zero{"--callers", c.Callers == 0}, zero{"--limit", c.Limit == 0}, zero{"--rtt", c.RTT == 0},
		zero{"--pool", c.Pool == 0}, zero{"--timeout", c.Timeout == 0})
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: race: %w", err)}
	}
	p := lab.RaceParams{Callers: c.Callers, Limit: c.Limit, RTT: c.RTT, Pool: c.Pool, Timeout: c.Timeout, Server: c.Server}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.Race(ctx, p)
	})
}
