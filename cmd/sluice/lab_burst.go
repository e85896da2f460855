package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

type burst struct {
	contested
	Window *time.Duration `placeholder:"D" help:"The time that is looked at. Default: the limit's period."`
	Strict bool           `help:"Add token buckets that keep the limit in any such time: burst + rate·t at most the count."`
	output
}

func (burst) Help() string {
	return `From a fresh state, a client takes one unit after the other, each as soon as it passes. It prints how many pass in
the first second: at 10/s with a burst of 10, a token bucket lets 20 through, both ends of the second included, and 19
in any half-open one. --strict shows what bounds any second: a burst and a rate that make the count together. It runs in
virtual time.

Example:

    sluice lab burst
    sluice lab burst --limit 100/10s --burst 20 --strict --report burst.html`
}

// Run runs the experiment and prints it.
func (c burst) Run(ctx context.Context, k *kong.Context, s streams) error {
	limit, err := c.limit("10/s")
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: burst: %w", err)}
	}
	p := lab.BurstParams{Limit: limit, Strict: c.Strict, Algorithms: c.Algorithms}
	if err := given("--window", c.Window, &p.Window); err != nil {
		return misuse{fmt.Errorf("sluice: lab: burst: %w", err)}
	}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.Burst(ctx, p)
	})
}
