// Package prom exports what a limiter does to Prometheus: [Metrics] is an observer of decisions and [NewProcess] reads what
// a process knows of itself. Both are prometheus.Collectors, for a registry of the caller's: nothing registers itself.
//
// No metric has a label per subject. Rules and limits come from the program, and at most telemetry.MaxLimits are told
// apart. docs/telemetry.md lists every metric; examples/ has a Grafana dashboard and alerts that use them.
package prom
