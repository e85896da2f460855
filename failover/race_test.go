//go:build race

package failover_test

// raceEnabled: the race detector runs, and what takes µs takes much longer.
const raceEnabled = true
