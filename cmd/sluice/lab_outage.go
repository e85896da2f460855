package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab"
)

type outage struct {
	Instances int           `default:"4" help:"Instances in each fleet, each with a client and a breaker of its own. Default: ${default}."`
	Limit     string        `default:"100/s" placeholder:"LIMIT" help:"Limit of a whole fleet, as in a rule file. Default: ${default}."`
	Burst     int64         `placeholder:"N" help:"Burst of the limit. Default: its count."`
	Demand    float64       `default:"4" placeholder:"X" help:"Requests of a whole fleet, in times the limit. Default: ${default}."`
	Skew      []float64     `placeholder:"W,..." help:"Weights of the instances' parts of the demand, such as 70,10,10,10. Default: equal."`
	Bunch     int           `default:"1" placeholder:"N" help:"Requests that arrive together. Default: ${default}."`
	Seed      uint64        `placeholder:"N" help:"Seed of the times of arrival. Default: 0."`
	Away      string        `default:"2-8" placeholder:"FROM-TO" help:"Seconds between which Redis is away. Default: ${default}."`
	Flap      time.Duration `default:"1s" placeholder:"D" help:"After that Redis comes for this long, goes for this long, and so on. Default: ${default}."`
	FlapFor   time.Duration `default:"4s" placeholder:"D" help:"For how long it does; 0s: not at all. Default: ${default}."`
	Duration  time.Duration `default:"14s" placeholder:"D" help:"Time of the run, in real time. Default: ${default}."`
	How       string        `enum:"refuse,hang" default:"refuse" help:"refuse: connections are reset. hang: they stay, and what is sent arrives late. Default: ${default}."`
	Timeout   time.Duration `default:"50ms" placeholder:"D" help:"Timeout of a call to Redis. Default: ${default}."`
	Server    string        `placeholder:"NAME" help:"redis-server, a program like it, or miniredis. Default: redis-server if it is in PATH, else miniredis."`
	SVG       string        `name:"svg" placeholder:"FILE" help:"Also draw the result to this file."`
	output
}

func (outage) Help() string {
	return `Five fleets meet the same requests on one private Redis, each under a key of its own, while Redis goes and comes:

    local, share and carry   local buckets with each instance's share of the limit, from the level that was left
    local, share alone       the same, but full at the beginning of each outage, and Redis as it was at the end
    local, neither           the same, and each instance has the whole limit
    allow                    everything passes while Redis is away
    deny                     nothing passes while Redis is away

It prints what they admitted, of the bound burst + rate·t and per second. It runs in real time, all fleets at once:
14 s as it stands. The long form below takes a minute.

Example:

    sluice lab outage --svg outage.svg
    sluice lab outage --away 5-35 --flap 2s --flap-for 20s --duration 60s
    sluice lab outage --skew 70,10,10,10 --how hang --json`
}

// Run runs the experiment and prints it. Progress goes to standard error.
func (c outage) Run(ctx context.Context, k *kong.Context, s streams) error {
	p, err := c.params()
	if err != nil {
		return misuse{fmt.Errorf("sluice: lab: outage: %w", err)}
	}
	if err := p.Check(); err != nil {
		return misuse{fmt.Errorf("sluice: %w", err)}
	}
	if err := errors.Join(writable("--svg", c.SVG), writable("--report", c.Report)); err != nil {
		return misuse{fmt.Errorf("sluice: lab: outage: %w", err)}
	}
	p.Progress = func(line string) { fmt.Fprintf(s.err, "outage: %s\n", line) }
	r, err := lab.Outage(ctx, p)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("sluice: lab: outage: interrupted")
	case err != nil:
		return fmt.Errorf("sluice: %w", err)
	}
	if err := c.print(k, s, r.Result(), r.WriteText); err != nil {
		return err
	}
	return c.also(s, "outage", "--svg", c.SVG, r.WriteSVG)
}

// params are the flags as the experiment has them. A flag that is given as 0 is wrong, not left out.
func (c outage) params() (lab.OutageParams, error) {
	limit, err := sluice.ParseLimit(c.Limit)
	if err != nil {
		return lab.OutageParams{}, fmt.Errorf("--limit: %w", err)
	}
	limit.Burst = c.Burst
	from, to, err := parseAway(c.Away)
	switch {
	case err != nil:
		return lab.OutageParams{}, err
	case c.Instances == 0:
		return lab.OutageParams{}, errors.New("--instances 0: want at least 1")
	case c.Demand == 0:
		return lab.OutageParams{}, errors.New("--demand 0: want above 0")
	case c.Bunch == 0:
		return lab.OutageParams{}, errors.New("--bunch 0: want at least 1")
	case c.Timeout == 0:
		return lab.OutageParams{}, errors.New("--timeout 0s: want at least 1ms")
	case c.Duration == 0:
		return lab.OutageParams{}, errors.New("--duration 0s: want above 0")
	}
	return lab.OutageParams{
		Instances: c.Instances, Limit: limit, Demand: c.Demand, Skew: c.Skew, Bunch: c.Bunch, Seed: c.Seed,
		Schedule: lab.Schedule{Duration: c.Duration, AwayFrom: from, AwayTo: to, FlapFor: c.FlapFor, Flap: c.Flap},
		How:      c.How, Timeout: c.Timeout, Server: c.Server,
	}, nil
}

// parseAway reads "5-35" or "500ms-2s": numbers without a unit are seconds.
func parseAway(s string) (from, to time.Duration, err error) {
	first, second, ok := strings.Cut(s, "-")
	if ok {
		from, err = parseSeconds(first)
	}
	if ok && err == nil {
		to, err = parseSeconds(second)
	}
	if !ok || err != nil {
		return 0, 0, fmt.Errorf("--away %q: want FROM-TO, such as 5-35 in seconds or 500ms-2s", s)
	}
	return from, to, nil
}

func parseSeconds(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	return time.ParseDuration(s + "s")
}
