package main

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/telemetry"
	"github.com/sluice-go/sluice/telemetry/prom"
)

// metrics are what /metrics shows of a process. Its observer is there before the Service that it is told of.
type metrics struct {
	running   atomic.Pointer[service.Service]
	decisions *prom.Metrics
	observer  sluice.Observer // counts decisions, and logs denials
}

func newMetrics(logger *slog.Logger) *metrics {
	m := &metrics{}
	rules := func() *policy.Rules {
		if s := m.running.Load(); s != nil {
			return s.Rules()
		}
		return nil
	}
	m.decisions = prom.New(rules)
	m.observer = telemetry.All(m.decisions, telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: logger, Rules: rules}))
	return m
}

// handler begins to read limits, and returns what answers /metrics.
func (m *metrics) handler(limits *service.Service) http.Handler {
	m.running.Store(limits)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.decisions, prom.NewProcess(limits.Process()), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
