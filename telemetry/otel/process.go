package otel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/telemetry"
)

// RegisterProcess makes a meter read p at each collection, and export what p has functions for, until the
// registration's Unregister. The error is the meter's.
func RegisterProcess(meter metric.Meter, p telemetry.Process) (metric.Registration, error) {
	k := instruments{meter: meter}
	r := &process{
		Process:   p,
		breaker:   k.gauge("sluice.breaker.state", "", "1 for the state that the breaker is in: closed, open or half-open."),
		instances: k.gauge("sluice.instances", "{instance}", "Processes that share each limit while the shared store is away."),
		keys:      k.gauge("sluice.local.keys", "{key}", "Keys kept in process."),
		info:      k.gauge("sluice.rules.info", "", "1 for the rule file that runs: the SHA-256 of its text, and its mode."),
		count:     k.gauge("sluice.rules", "{rule}", "Rules that run."),
		loaded:    k.gauge("sluice.rules.loaded", "s", "When the rules that run were read, in Unix time."),
		success:   k.gauge("sluice.rules.last_reload_successful", "", "1 if the file as it was read last runs, 0 if it was refused and older rules run."),
	}
	r.overflow = k.total("sluice.local.overflow.decisions", "{decision}", "Decisions on a state that subjects share for want of room.")
	r.readings = k.total("sluice.rules.readings", "{reading}", "Readings of the rule file: loaded, the first too, or refused.")
	if k.err != nil {
		return nil, k.err
	}
	reg, err := meter.RegisterCallback(r.observe, r.breaker, r.instances, r.keys, r.overflow, r.info, r.count, r.loaded, r.readings, r.success)
	if err != nil {
		return nil, fmt.Errorf("otel: callback: %w", err)
	}
	return reg, nil
}

type process struct {
	telemetry.Process
	breaker, instances, keys, info, count, loaded, success metric.Int64ObservableGauge
	overflow, readings                                     metric.Int64ObservableCounter
}

func (k *instruments) gauge(name, unit, what string) metric.Int64ObservableGauge {
	return keep(k, func() (metric.Int64ObservableGauge, error) {
		return k.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	})
}

func (k *instruments) total(name, unit, what string) metric.Int64ObservableCounter {
	return keep(k, func() (metric.Int64ObservableCounter, error) {
		return k.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	})
}

func (p *process) observe(_ context.Context, to metric.Observer) error {
	if p.Breaker != nil {
		now := p.Breaker()
		for _, s := range []failover.State{failover.Closed, failover.Open, failover.HalfOpen} {
			to.ObserveInt64(p.breaker, truth(s == now), metric.WithAttributes(attribute.String("sluice.breaker.state", s.String())))
		}
	}
	if p.Share != nil {
		to.ObserveInt64(p.instances, telemetry.Instances(p.Share()))
	}
	for name, st := range p.Stores {
		of := metric.WithAttributes(attribute.String("sluice.store", telemetry.Text(name)))
		to.ObserveInt64(p.keys, int64(st.Len()), of)
		to.ObserveInt64(p.overflow, st.Overflows(), of)
	}
	if p.Rules != nil {
		r := p.Rules()
		to.ObserveInt64(p.info, 1, metric.WithAttributes(attribute.String("sluice.rules.hash", telemetry.Text(r.Hash)), attribute.String("sluice.rules.mode", telemetry.Text(r.Mode))))
		to.ObserveInt64(p.count, int64(r.Count))
		if !r.Loaded.IsZero() {
			to.ObserveInt64(p.loaded, r.Loaded.Unix())
		}
		to.ObserveInt64(p.readings, r.Loads, metric.WithAttributes(attribute.String("sluice.rules.result", "loaded")))
		to.ObserveInt64(p.readings, r.Refusals, metric.WithAttributes(attribute.String("sluice.rules.result", "refused")))
		to.ObserveInt64(p.success, truth(r.Refused.IsZero()))
	}
	return nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
