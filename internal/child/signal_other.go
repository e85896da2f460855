//go:build !unix

package child

import "errors"

// Pause can't be done here.
func (p *Process) Pause() error { return errors.ErrUnsupported }

// Resume can't be done here.
func (p *Process) Resume() error { return errors.ErrUnsupported }
