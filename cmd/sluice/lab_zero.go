package main

import (
	"errors"
	"fmt"

	"github.com/sluice-go/sluice"
)

// zero is a flag, and whether it was given as 0: an experiment takes 0 for left out, and a command must not.
type zero struct {
	flag string
	is   bool
}

// noZeros is an error that names the first flag that is 0.
func noZeros(flags ...zero) error {
	for _, f := range flags {
		if f.is {
			return errors.New(f.flag + " 0: want above 0")
		}
	}
	return nil
}

// parseBucket reads --limit and --burst.
func parseBucket(limit string, burst int64) (sluice.Limit, error) {
	l, err := sluice.ParseLimit(limit)
	if err != nil {
		return l, fmt.Errorf("--limit: %w", err)
	}
	l.Burst = burst
	return l, nil
}
