package failover

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
)

// probeTime bounds a Probe.
const probeTime = time.Second

// probed is what Probe asks, and where: it is of the last call that the primary left unanswered while the breaker was not
// closed.
type probed struct {
	store sluice.Store
	asks  []sluice.Ask // of distinct subjects
}

// mostProbed bounds the asks of a probe: a rule has few limits, and few of them differ in their subjects.
const mostProbed = 16

// noteUnanswered keeps what to probe of a call that failed; each of its subjects, too: where keys are spread over servers,
// a key of the probe's is then on the one that failed, whichever it is.
func (b *Breaker) noteUnanswered(s sluice.Store, asks ...sluice.Ask) {
	if State(b.state.Load()) == Closed {
		return
	}
	p := &probed{store: s}
	for i := range asks {
		subject := asks[i].Key.Subject
		if len(p.asks) == mostProbed {
			break
		}
		if slices.ContainsFunc(p.asks, func(a sluice.Ask) bool { return a.Key.Subject == subject }) {
			continue
		}
		key := sluice.Key{Rule: b.probeRule, Subject: strings.Clone(subject)} // the caller's may be a part of more
		p.asks = append(p.asks, sluice.Ask{Strategy: asks[i].Strategy, Key: key, N: 1})
	}
	b.unanswered.Store(p)
}

// Probe lets the probes that close a half-open breaker be made where no caller comes by to make them. Call it at times
// when the shared store is known to answer something, such as after a heartbeat. While the breaker is closed or open, or
// callers' probes are under way, it asks nothing. It returns within a second, if the store keeps to its context.
//
// A probe is what a decision is: a charge of 1 for each subject of the last call that failed, 16 at most, by the strategy
// there, under a Rule of the breaker's own, so that no limit is charged; a Reset forgets it. One that fails fails the probe.
// Less would not do: a Redis that answers heartbeats and reads may refuse a decision's writes (OOM, READONLY, a right that
// is missing), and a breaker that closes on those opens again at the next decisions, over and over.
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
	return b.call(ctx, func() error {
		for _, a := range p.asks {
			if _, err := p.store.Take(ctx, a); err != nil {
				return err
			}
			a.Mode, a.N = sluice.Reset, 0
			if _, err := p.store.Take(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
}
