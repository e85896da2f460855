package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

type block struct {
	Entries  int           `default:"100000" placeholder:"N" help:"Requests that the logs hold. Default: ${default}."`
	Every    time.Duration `default:"200ms" placeholder:"D" help:"Time between two decisions of the one client. Default: ${default}."`
	Others   int           `default:"4" placeholder:"N" help:"Clients that read a key each millisecond meanwhile. Default: ${default}."`
	Duration time.Duration `default:"1s" placeholder:"D" help:"Time of each variant, in real time. Default: ${default}."`
	Server   string        `placeholder:"NAME" help:"redis-server, a program like it, or miniredis. Default: redis-server if it is in PATH, else miniredis."`
	output
}

func (block) Help() string {
	return `One client decides a few times a second on a private Redis, and others read a key each millisecond. It prints how long the
others wait, by how the one decides:

    alone                     nobody decides
    token_bucket              this module's store
    token_bucket_1000_per_s   the same, a thousand times a second
    log_zset                  a sliding log in a sorted set, trimmed with each decision
    log_zset_pause            the same, where one decision has all of it to trim
    log_zset_counted          a sliding log whose window is fetched and counted
    log_list_walked           a sliding log in a list, walked

It runs in real time, a second each.

Example:

    sluice lab block
    sluice lab block --entries 10000 --every 20ms --report block.html`
}

// Run runs the experiment and prints it.
func (c block) Run(ctx context.Context, k *kong.Context, s streams) error {
	err := noZeros(zero{"--entries", c.Entries == 0}, zero{"--every", c.Every == 0}, zero{"--others", c.Others == 0},
		zero{"--duration", c.Duration == 0})
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: block: %w", err)}
	}
	p := lab.BlockParams{Entries: c.Entries, Every: c.Every, Others: c.Others, Duration: c.Duration, Server: c.Server}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.Block(ctx, p)
	})
}
