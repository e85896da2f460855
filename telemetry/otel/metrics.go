package otel

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/telemetry"
)

// Metrics counts decisions: an observer for a store. It is safe for concurrent use.
//
// Asks that only look, give back or forget (Peek, Settle, Reset) are no decisions, and are not counted. Decisions of
// shadows refuse nobody, and are counted apart.
type Metrics struct {
	decisions, shadows, transitions metric.Int64Counter
	duration                        metric.Float64Histogram

	limits *telemetry.Limits[series]
	took   [telemetry.Sources][]metric.RecordOption
}

// series is the attributes of one limit, made once: a call that makes them anew allocates.
type series struct {
	telemetry.Limit
	decisions       [telemetry.Outcomes][telemetry.Sources]atomic.Pointer[[]metric.AddOption]
	agree, disagree []metric.AddOption
}

// New returns metrics on a meter, that have seen nothing. rules says what limits are called and which are shadows, as
// Service.Rules does; see telemetry.NewLimits. Nil: names are those in Key.Rule, and nothing is a shadow. The error is
// the meter's.
func New(meter metric.Meter, rules func() *policy.Rules) (*Metrics, error) {
	k := instruments{meter: meter}
	m := &Metrics{
		decisions:   k.counter("sluice.decisions", "{decision}", "Decisions about requests by limits that refuse."),
		shadows:     k.counter("sluice.shadow.decisions", "{decision}", "Decisions by shadows: they agree that the request passes, or would have refused it."),
		transitions: k.counter("sluice.breaker.transitions", "{transition}", "Changes of the breaker's state."),
	}
	m.duration = keep(&k, func() (metric.Float64Histogram, error) {
		return meter.Float64Histogram("sluice.decision.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(telemetry.Durations()...),
			metric.WithDescription("Time that a decision took; one call for several limits counts once for each."))
	})
	if k.err != nil {
		return nil, k.err
	}
	m.limits = telemetry.NewLimits(rules, newSeries)
	for s := range m.took {
		name := telemetry.SourceName(sluice.Source(s))
		m.took[s] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("sluice.source", name)))}
	}
	return m, nil
}

func newSeries(l telemetry.Limit) *series {
	return &series{Limit: l,
		agree:    attributesOf(l, attribute.String("sluice.verdict", "agree")),
		disagree: attributesOf(l, attribute.String("sluice.verdict", "disagree")),
	}
}

// attributesOf returns the attributes of a limit, and more.
func attributesOf(l telemetry.Limit, more ...attribute.KeyValue) []metric.AddOption {
	all := append(more, attribute.String("sluice.rule", l.Rule), attribute.String("sluice.limit", l.Name), attribute.String("sluice.algorithm", l.Algorithm))
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(all...))}
}

// Observe counts the ask, if it is a decision.
func (m *Metrics) Observe(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
	if !telemetry.Decides(a.Mode) {
		return
	}
	outcome := telemetry.OutcomeOf(ctx, d, err, took)
	source := telemetry.SourceOf(d, outcome)
	m.duration.Record(ctx, took.Seconds(), m.took[source]...)
	s := m.limits.Of(a.Key.Rule, a.Strategy)
	switch {
	case !s.Shadow:
		m.decisions.Add(ctx, 1, s.attributes(outcome, source)...)
	case outcome == telemetry.Allowed:
		m.shadows.Add(ctx, 1, s.agree...)
	case outcome == telemetry.Denied:
		m.shadows.Add(ctx, 1, s.disagree...)
	}
}

func (s *series) attributes(o telemetry.Outcome, from sluice.Source) []metric.AddOption {
	at := &s.decisions[o][from]
	if known := at.Load(); known != nil {
		return *known
	}
	made := attributesOf(s.Limit, attribute.String("sluice.outcome", o.String()), attribute.String("sluice.source", telemetry.SourceName(from)))
	at.Store(&made)
	return made
}

// BreakerChanged counts a change of a breaker's state: failover.Options.OnChange.
func (m *Metrics) BreakerChanged(from, to failover.State) {
	m.transitions.Add(context.Background(), 1, metric.WithAttributes(
		attribute.String("sluice.breaker.from", from.String()), attribute.String("sluice.breaker.to", to.String())))
}

// instruments makes instruments of a meter until one fails.
type instruments struct {
	meter metric.Meter
	err   error
}

func keep[T any](k *instruments, create func() (T, error)) (made T) {
	if k.err != nil {
		return made
	}
	made, err := create()
	if err != nil {
		k.err = fmt.Errorf("otel: instrument: %w", err)
	}
	return made
}

func (k *instruments) counter(name, unit, what string) metric.Int64Counter {
	return keep(k, func() (metric.Int64Counter, error) {
		return k.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	})
}
