//go:build unix

package redistest

import "syscall"

// pause freezes the child: its sockets stay open and answer nothing.
func (p *process) pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// resume undoes pause.
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
