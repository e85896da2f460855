package failover

import (
	"context"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
)

// probeTime bounds a Probe.
const probeTime = time.Second

// probed is what Probe asks, and where: it is of the last ask that the primary left unanswered while the breaker was not
// closed.
type probed struct {
	store    sluice.Store
	strategy sluice.Strategy
	subject  string
}

// noteUnanswered keeps what to probe of an ask that failed; the subject, too: where keys are spread over servers, the
// probe's key is then on the server that failed.
func (b *Breaker) noteUnanswered(s sluice.Store, a *sluice.Ask) {
	if State(b.state.Load()) != Closed {
		b.unanswered.Store(&probed{s, a.Strategy, strings.Clone(a.Key.Subject)}) // the caller's may be a part of more
	}
}

// Probe lets the probes that close a half-open breaker be made where no caller comes by to make them. Call it at times
// when the shared store is known to answer something, such as after a heartbeat. While the breaker is closed or open, or
// callers' probes are under way, it asks nothing. It returns within a second, if the store keeps to its context.
//
// A probe is what a decision is: a charge of 1, by the strategy and for the subject of the last ask that failed, under a Rule
// of the breaker's own, so that no limit is charged; a Reset forgets it. Less would not do: a Redis that answers heartbeats
// and reads may refuse a decision's writes (OOM, READONLY, a right that is missing), and a breaker that closes on those
// opens again at the next decisions, over and over.
func (b *Breaker) Probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	for range b.options.Probes {
		p := b.unanswered.Load()
		if p == nil || b.State() != HalfOpen {
			return
		}
		if asked, err := b.probe(ctx, p); !asked || err != nil {
			return
		}
	}
	b.send()
}

func (b *Breaker) probe(ctx context.Context, p *probed) (asked bool, err error) {
	a := sluice.Ask{Strategy: p.strategy, Key: sluice.Key{Rule: b.probeRule, Subject: p.subject}, N: 1}
	return b.call(ctx, p.store, &a, func() error {
		if _, err := p.store.Take(ctx, a); err != nil {
			return err
		}
		reset := a
		reset.Mode, reset.N = sluice.Reset, 0
		_, err := p.store.Take(ctx, reset)
		return err
	})
}
