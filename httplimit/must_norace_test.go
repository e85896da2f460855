//go:build !race

package httplimit_test

const (
	raceEnabled = false
	manyKeys    = 1_000_000
)
