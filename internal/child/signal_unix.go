//go:build unix

package child

import "syscall"

// Pause freezes the child: its sockets stay open and answer nothing.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
