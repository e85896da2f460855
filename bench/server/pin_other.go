//go:build !linux

package server

import "errors"

// Pin can't be done here.
func Pin(pid, cpu int) error { return errors.ErrUnsupported }

// PinCallers can't be done here.
func PinCallers(cpu int) (release func() error, err error) { return nil, errors.ErrUnsupported }

// CPUs returns none: nothing can be pinned.
func CPUs() []int { return nil }
