// Package otel exports what a limiter does through OpenTelemetry: [Metrics] is an observer of decisions and
// [RegisterProcess] reads what a process knows of itself. Both work on a Meter of the caller's; no global one is used.
//
// No metric has an attribute per subject. Rules and limits come from the program, and at most telemetry.MaxLimits are
// told apart. The metrics are those of telemetry/prom under dotted names; docs/telemetry.md lists them.
package otel
