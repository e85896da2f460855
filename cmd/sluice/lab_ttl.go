package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

type ttl struct {
	Limit    string        `default:"10/h" placeholder:"LIMIT" help:"Limit of each subject, as in a rule file. Default: ${default}."`
	Burst    int64         `placeholder:"N" help:"Burst of the limit. Default: its count."`
	Short    time.Duration `default:"60s" placeholder:"D" help:"A fixed expiry. Default: ${default}."`
	Long     time.Duration `default:"24h" placeholder:"D" help:"Another. Default: ${default}."`
	Pause    time.Duration `placeholder:"D" help:"Of the client that asks for a burst, pauses, and so on. Default: the short expiry and a second."`
	Visitors int           `default:"100000" placeholder:"N" help:"Subjects that come once, at random times. Default: ${default}."`
	Requests int           `default:"3" placeholder:"N" help:"Requests of a visitor, a second apart. Default: ${default}."`
	Duration time.Duration `default:"24h" placeholder:"D" help:"Time of the run, in virtual time. Default: ${default}."`
	Seed     uint64        `placeholder:"N" help:"Seed of the visitors' times. Default: 0."`
	Server   string        `placeholder:"NAME" help:"Whose memory counts: redis-server, a program like it, or miniredis, which does not tell. Default: redis-server if it is in PATH, else miniredis."`
	output
}

func (ttl) Help() string {
	return `Keys are given an expiry: a short fixed one, a long fixed one, or the time to full, as this module's store has it. One client
knows the short one and comes back after it; many visitors come once. It prints what the client was admitted, and the keys
and bytes that the visitors leave. Time is virtual; what a key takes is asked of a private Redis.

Example:

    sluice lab ttl
    sluice lab ttl --limit 5/min --visitors 1000000 --json`
}

// Run runs the experiment and prints it.
func (c ttl) Run(ctx context.Context, k *kong.Context, s streams) error {
	err := noZeros(zero{"--short", c.Short == 0}, zero{"--long", c.Long == 0}, zero{"--visitors", c.Visitors == 0},
		zero{"--requests", c.Requests == 0}, zero{"--duration", c.Duration == 0})
	limit, bad := parseBucket(c.Limit, c.Burst)
	if err == nil {
		err = bad
	}
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: ttl: %w", err)}
	}
	p := lab.TTLParams{Limit: limit, Short: c.Short, Long: c.Long, Pause: c.Pause, Visitors: c.Visitors, Requests: c.Requests,
		Duration: c.Duration, Seed: c.Seed, Server: c.Server}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.TTL(ctx, p)
	})
}
