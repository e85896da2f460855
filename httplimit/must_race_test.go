//go:build race

package httplimit_test

// Under the race detector a tenth of the keys are tried, and sizes are not those of a program.
const (
	raceEnabled = true
	manyKeys    = 100_000
)
