package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/telemetry"
)

// NewProcess returns a collector that reads p at each scrape, and exports what p has functions for.
func NewProcess(p telemetry.Process) prometheus.Collector {
	return &process{
		Process:   p,
		breaker:   desc("breaker_state", "1 for the state that the breaker is in: closed, open or half-open.", "state"),
		instances: desc("instances", "Processes that share each limit while the shared store is away."),
		keys:      desc("local_keys", "Keys kept in process.", "store"),
		overflow:  desc("local_overflow_decisions_total", "Decisions on a state that subjects share for want of room.", "store"),
		info:      desc("rules_info", "1 for the rule file that runs: the SHA-256 of its text, and its mode.", "hash", "mode"),
		count:     desc("rules", "Rules that run."),
		loaded:    desc("rules_loaded_timestamp_seconds", "When the rules that run were read."),
		reloads:   desc("rules_readings_total", "Readings of the rule file: loaded, the first too, or refused.", "result"),
		success:   desc("rules_last_reload_successful", "1 if the file as it was read last runs, 0 if it was refused and older rules run."),
	}
}

type process struct {
	telemetry.Process
	breaker, instances, keys, overflow, info, count, loaded, reloads, success *prometheus.Desc
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sluice_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (p *process) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.breaker, p.instances, p.keys, p.overflow, p.info, p.count, p.loaded, p.reloads, p.success} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p *process) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	if p.Breaker != nil {
		now := p.Breaker()
		for _, s := range []failover.State{failover.Closed, failover.Open, failover.HalfOpen} {
			gauge(p.breaker, truth(s == now), s.String())
		}
	}
	if p.Share != nil {
		gauge(p.instances, float64(telemetry.Instances(p.Share())))
	}
	for name, st := range p.Stores {
		gauge(p.keys, float64(st.Len()), telemetry.Text(name))
		counter(p.overflow, float64(st.Overflows()), telemetry.Text(name))
	}
	if p.Rules != nil {
		r := p.Rules()
		gauge(p.info, 1, telemetry.Text(r.Hash), telemetry.Text(r.Mode))
		gauge(p.count, float64(r.Count))
		gauge(p.loaded, seconds(r.Loaded))
		counter(p.reloads, float64(r.Loads), "loaded")
		counter(p.reloads, float64(r.Refusals), "refused")
		gauge(p.success, truth(r.Refused.IsZero()))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}
