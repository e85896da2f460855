// Package telemetry holds what the packages that export measurements share: [OutcomeOf] a decision, the [Limits] that
// decisions are counted by, and what is asked of a [Process]. [DenialLog] needs no exporter: it writes a log line at a
// subject's first denial in a minute.
//
// Package telemetry/prom exports to Prometheus and telemetry/otel to OpenTelemetry. Each has an Observer for a store that
// observes: sluice.Observe(store, observer), or Options.Observer of package service. [All] makes one of several.
//
// Nothing is kept or exported by subject, so that a flood of subjects costs nothing here; the log has a bound of its own.
package telemetry
