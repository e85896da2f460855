package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice"
)

// promptly is how long a call with a context that is done may take: far more than it should, for slow machines.
const promptly = 2 * time.Second

var contexts = []Case{{
	Name: "Cancelled",
	Rule: "a cancellation is context.Canceled alone: neither ErrUnavailable, which would feed a breaker, nor a decision; nothing is charged",
	run: func(p *probe) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			check := func(what string, start time.Time, allowed bool, err error) {
				p.want(errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, sluice.ErrUnavailable),
					"%s with a cancelled context: Allowed %v, error %v; want context.Canceled alone", what, allowed, err)
				p.want(!allowed, "%s with a cancelled context: an error, and yet allowed", what)
				p.want(time.Since(start) < promptly, "%s with a cancelled context took %v", what, time.Since(start))
			}
			for _, m := range []sluice.Mode{sluice.Charge, sluice.Peek, sluice.UpTo, sluice.Settle, sluice.Reset} {
				start := time.Now()
				d, err := p.store.Take(ctx, sluice.Ask{Strategy: st, Key: k, N: 2, Mode: m})
				check(m.String(), start, d.Allowed, err)
			}
			start := time.Now()
			v, err := p.takeAll(ctx, []sluice.Ask{ask(st, k, 1), ask(st, p.key(), 1)})
			check("TakeAll", start, v.Allowed, err)
			p.left("after calls with a cancelled context", st, k, 5)
		})
	},
}, {
	Name: "DeadlineHolds",
	Rule: "a call returns by its deadline; its error, if it has one, wraps context.DeadlineExceeded",
	run: func(p *probe) {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		p.each(still(5), func(st sluice.Strategy) {
			check := func(what string, start time.Time, err error) {
				p.want(err == nil || errors.Is(err, context.DeadlineExceeded), "%s after its deadline: %v; want context.DeadlineExceeded", what, err)
				p.want(!errors.Is(err, context.Canceled), "%s after its deadline: %v, which is no cancellation", what, err)
				p.want(time.Since(start) < promptly, "%s after its deadline took %v", what, time.Since(start))
			}
			start := time.Now()
			_, err := p.store.Take(ctx, ask(st, p.key(), 1))
			check("Take", start, err)
			start = time.Now()
			_, err = p.takeAll(ctx, []sluice.Ask{ask(st, p.key(), 1), ask(st, p.key(), 1)})
			check("TakeAll", start, err)
		})
	},
}}
