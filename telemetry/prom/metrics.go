package prom

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/telemetry"
)

// Metrics counts decisions: an observer for a store, and a prometheus.Collector. It is safe for concurrent use. To
// count one allocates nothing, but for the first of a limit, an outcome and a source.
//
// Asks that only look, give back or forget (Peek, Settle, Reset) are no decisions, and are not counted. Decisions of
// shadows refuse nobody, and are counted apart.
type Metrics struct {
	decisions, shadows, transitions *prometheus.CounterVec
	duration                        *prometheus.HistogramVec

	limits *telemetry.Limits[series]
	took   [telemetry.Sources]prometheus.Observer
}

// series is the counters of one limit.
type series struct {
	telemetry.Limit
	decisions [telemetry.Outcomes][telemetry.Sources]atomic.Pointer[prometheus.Counter]
	agree     atomic.Pointer[prometheus.Counter]
	disagree  atomic.Pointer[prometheus.Counter]
}

// New returns metrics that have seen nothing. rules says what limits are called and which are shadows, as
// Service.Rules does; see telemetry.NewLimits. Nil: names are those in Key.Rule, and nothing is a shadow.
func New(rules func() *policy.Rules) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_decisions_total", Help: "Decisions about requests by limits that refuse.",
		}, []string{"rule", "limit", "algorithm", "outcome", "source"}),
		shadows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_shadow_decisions_total", Help: "Decisions by shadows: they agree that the request passes, or would have refused it.",
		}, []string{"rule", "limit", "algorithm", "verdict"}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_breaker_transitions_total", Help: "Changes of the breaker's state.",
		}, []string{"from", "to"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_decision_duration_seconds", Help: "Time that a decision took; one call for several limits counts once for each.",
			Buckets: telemetry.Durations(),
		}, []string{"source"}),
	}
	m.limits = telemetry.NewLimits(rules, func(l telemetry.Limit) *series { return &series{Limit: l} })
	for s := range m.took {
		m.took[s] = m.duration.WithLabelValues(telemetry.SourceName(sluice.Source(s)))
	}
	for _, change := range [][2]failover.State{ // from 0, so that an increase shows the first
		{failover.Closed, failover.Open}, {failover.Open, failover.HalfOpen}, {failover.HalfOpen, failover.Open}, {failover.HalfOpen, failover.Closed},
	} {
		m.transitions.WithLabelValues(change[0].String(), change[1].String())
	}
	return m
}

// Observe counts the ask, if it is a decision.
func (m *Metrics) Observe(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
	if !telemetry.Decides(a.Mode) {
		return
	}
	outcome := telemetry.OutcomeOf(ctx, d, err, took)
	source := telemetry.SourceOf(d, outcome)
	m.took[source].Observe(took.Seconds())
	s := m.limits.Of(a.Key.Rule, a.Strategy)
	switch {
	case !s.Shadow:
		m.decision(s, outcome, source)
	case outcome == telemetry.Allowed:
		m.shadow(s, &s.agree)
	case outcome == telemetry.Denied:
		m.shadow(s, &s.disagree)
	}
}

func (m *Metrics) decision(s *series, o telemetry.Outcome, from sluice.Source) {
	at := &s.decisions[o][from]
	c := at.Load()
	if c == nil {
		c = m.firstDecision(s, o, from)
	}
	(*c).Inc()
}

// firstDecision makes a counter, and with it those of what else the source decides, from 0.
func (m *Metrics) firstDecision(s *series, o telemetry.Outcome, from sluice.Source) *prometheus.Counter {
	both := []telemetry.Outcome{telemetry.Allowed, telemetry.Denied}
	if from == telemetry.NoSource {
		both = nil
	}
	for _, o := range append(both, o) {
		c := m.decisions.WithLabelValues(s.Rule, s.Name, s.Algorithm, o.String(), telemetry.SourceName(from))
		s.decisions[o][from].Store(&c) // another call may do the same: the counter is the same
	}
	return s.decisions[o][from].Load()
}

func (m *Metrics) shadow(s *series, at *atomic.Pointer[prometheus.Counter]) {
	c := at.Load()
	if c == nil {
		agree := m.shadows.WithLabelValues(s.Rule, s.Name, s.Algorithm, "agree")
		disagree := m.shadows.WithLabelValues(s.Rule, s.Name, s.Algorithm, "disagree")
		s.agree.Store(&agree)
		s.disagree.Store(&disagree)
		c = at.Load()
	}
	(*c).Inc()
}

// BreakerChanged counts a change of a breaker's state: failover.Options.OnChange.
func (m *Metrics) BreakerChanged(from, to failover.State) {
	m.transitions.WithLabelValues(from.String(), to.String()).Inc()
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.decisions, m.shadows, m.transitions, m.duration}
}
