package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/lab/sim"
)

// contest is algorithms under one limit that meet the same requests in virtual time.
type contest struct {
	experiment string
	limit      sluice.Limit
	arrivals   sim.Arrivals
	options    sim.Options
	progress   func(string)
}

// cancelEach is how many decisions are made between two looks at a context.
const cancelEach = 1 << 14

// run runs a limiter, and calls observe, if any, with each decision.
func (c contest) run(ctx context.Context, l sim.Limiter, observe func(*sim.Event)) (sim.Figures, error) {
	s, err := sim.Begin(l, c.arrivals, c.options)
	if err != nil {
		return sim.Figures{}, fmt.Errorf("lab: %s: %w", c.experiment, err)
	}
	for i := 1; ; i++ {
		e, more := s.Next()
		if !more {
			return s.Figures(), nil
		}
		if observe != nil {
			observe(e)
		}
		if i%cancelEach == 0 && ctx.Err() != nil {
			return sim.Figures{}, context.Cause(ctx)
		}
	}
}

// Contender is a strategy of one's own, to be compared with the algorithms.
type Contender struct {
	Name     string // snake_case, none of sim.Algorithms()
	Strategy sluice.Strategy
}

// each runs all of the named algorithms, and then the others. observer returns what is called with each decision of one
// of them.
func (c contest) each(ctx context.Context, names []string, others []Contender, observer func(name string) func(*sim.Event), done func(name string, f sim.Figures)) error {
	one := func(i int, name string, l sim.Limiter) error {
		start := time.Now()
		f, err := c.run(ctx, l, observer(name))
		if err != nil {
			return err
		}
		done(name, f)
		if c.progress != nil && time.Since(start) > time.Second {
			c.progress(fmt.Sprintf("%s, %d of %d: %d decisions", name, i+1, len(names)+len(others), f.Asked))
		}
		return nil
	}
	for i, name := range names {
		l, err := sim.New(name, c.limit)
		if err != nil {
			return fmt.Errorf("lab: %s: %w", c.experiment, err)
		}
		if err := one(i, name, l); err != nil {
			return err
		}
	}
	for i, other := range others {
		if err := one(len(names)+i, other.Name, sim.Of(other.Strategy)); err != nil {
			return err
		}
	}
	return nil
}

// checkAlgorithms returns the names to run: all, if none are given.
func checkAlgorithms(experiment string, names []string, l sluice.Limit) ([]string, error) {
	if len(names) == 0 {
		names = sim.Algorithms()
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("lab: %s: Algorithms: %s twice", experiment, name)
		}
		if _, err := sim.New(name, l); err != nil {
			return nil, fmt.Errorf("lab: %s: %w", experiment, err)
		}
	}
	return names, nil
}

// filledLimit is l, or without one another; its Burst is the Count where it is 0.
func filledLimit(l, otherwise sluice.Limit) sluice.Limit {
	if l == (sluice.Limit{}) {
		l = otherwise
	}
	if l.Burst == 0 {
		l.Burst = l.Count
	}
	return l
}

// limitRate is a limit in units a second.
func limitRate(l sluice.Limit) float64 { return float64(l.Count) / l.Period.Seconds() }

// inWords is a duration as a part of a figure's name: 20s, 1500ms, 1m30s, 1h.
func inWords(d time.Duration) string {
	s := d.String()
	if d >= time.Minute {
		s = strings.TrimSuffix(s, "m0s")
		if s != d.String() {
			s += "m"
		}
		if trimmed := strings.TrimSuffix(s, "h0m"); trimmed != s {
			s = trimmed + "h"
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "µ", "u"), ".", "_")
}

func limitFields(l sluice.Limit) Fields {
	return Fields{{"limit_count", l.Count}, {"limit_period_s", l.Period.Seconds()}, {"burst", l.Burst}}
}
