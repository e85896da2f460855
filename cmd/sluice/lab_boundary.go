package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab"
)

type boundary struct {
	contested
	Around *time.Duration `placeholder:"D" help:"Requests come from this long before the end of a window to this long after it. Default: a sixth of the period."`
	Rate   *float64       `placeholder:"X" help:"Requests a second meanwhile. Default: ten times the limit's."`
	output
}

func (boundary) Help() string {
	return `Requests come around the end of a window, as an attacker's would who knows when windows end. It prints how much
each algorithm lets through in that time: of 600 a minute a fixed window admits 1,200 in 20 s, a sliding window of two
counters 700 (600, then 10 a second as the old window fades), and an exact log 600. It runs in virtual time.

Example:

    sluice lab boundary
    sluice lab boundary --limit 100/10s --around 2s --report boundary.html`
}

// Run runs the experiment and prints it.
func (c boundary) Run(ctx context.Context, k *kong.Context, s streams) error {
	limit, err := c.limit("600/min")
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: boundary: %w", err)}
	}
	p := lab.BoundaryParams{Limit: limit, Algorithms: c.Algorithms}
	if err := errors.Join(given("--around", c.Around, &p.Around), given("--rate", c.Rate, &p.Rate)); err != nil {
		return misuse{fmt.Errorf("sluice: lab: boundary: %w", err)}
	}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	return c.run(k, s, func(progress func(string)) (lab.Result, error) {
		p.Progress = progress
		return lab.Boundary(ctx, p)
	})
}

// contested are the flags of experiments in which algorithms meet under one limit.
type contested struct {
	Limit      string   `placeholder:"LIMIT" help:"Limit, as in a rule file, such as 100/10s."`
	Burst      *int64   `placeholder:"N" help:"Burst of the token bucket and the leaky bucket. Default: the limit's count."`
	Algorithms []string `placeholder:"NAME" help:"Algorithms to run: token_bucket, fixed_window, sliding_window, leaky_bucket, exact_log. Default: all."`
}

// limit is the limit of the flags, or another.
func (c contested) limit(otherwise string) (sluice.Limit, error) {
	text := c.Limit
	if text == "" {
		text = otherwise
	}
	l, err := sluice.ParseLimit(text)
	if err != nil {
		return sluice.Limit{}, fmt.Errorf("--limit: %w", err)
	}
	return l, given("--burst", c.Burst, &l.Burst)
}

// given sets a choice to what a flag says, if it was given. 0 is an error: to an experiment it would be left out.
func given[T comparable](flag string, value, to *T) error {
	if value == nil {
		return nil
	}
	if *to = *value; *to == *new(T) {
		return fmt.Errorf("%s %v: want above 0", flag, *value)
	}
	return nil
}
