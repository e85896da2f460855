package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/server"
)

// Plan says how long a work is measured.
type Plan struct {
	Rounds int
	Round  time.Duration           // of one contender in one round
	Step   func(work, name string) // called before each round of a contender
}

// Result is what a work measured.
type Result struct {
	Work   Work
	Rounds map[string][]Figures // by contender, in the order of the rounds
}

// Run measures contenders at one work on the first of the nodes; figures are of all nodes. It goes in rounds: in each round one after another, in an order that rotates, so that a slow
// moment of the machine strikes them all alike.
func Run(ctx context.Context, nodes server.Nodes, w Work, contenders []contender.Contender, p Plan) (res Result, err error) {
	res = Result{Work: w, Rounds: map[string][]Figures{}}
	callers := make([]*caller, w.Callers)
	keys := Keys(w.Keys)
	for i := range callers {
		callers[i] = newCaller(uint64(i), keys)
	}
	limiters := make([]contender.Limiter, 0, len(contenders))
	samples := make([]int, 0, len(contenders))
	defer func() {
		for _, l := range limiters {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := nodes.Flush(ctx); err != nil {
		return res, err
	}
	for _, c := range contenders {
		l, err := c.Open(nodes[0].Addr, w.Limit)
		if err != nil {
			return res, fmt.Errorf("load: %s: %w", c.Name, err)
		}
		limiters = append(limiters, l)
		if p.Step != nil {
			p.Step(w.Name, c.Name+" warms up")
		}
		every, err := warm(ctx, l, callers)
		if err != nil {
			return res, err
		}
		samples = append(samples, every)
	}
	for r := range p.Rounds {
		for i := range contenders {
			i = (i + r) % len(contenders)
			if err := ctx.Err(); err != nil {
				return res, err
			}
			if p.Step != nil {
				p.Step(w.Name, contenders[i].Name)
			}
			f, err := round(ctx, nodes, limiters[i], callers, samples[i], p.Round)
			if err != nil {
				return res, fmt.Errorf("load: %s: %s: %w", w.Name, contenders[i].Name, err)
			}
			res.Rounds[contenders[i].Name] = append(res.Rounds[contenders[i].Name], f)
		}
	}
	return res, nil
}
