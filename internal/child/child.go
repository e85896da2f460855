// Package child starts processes that end with this one, such as a redis-server for a test or an experiment.
package child

import (
	"os/exec"
	"runtime"
)

// Goroutine is the function of the one goroutine that each running child has, for goleak.IgnoreAnyFunction in tests that
// look for leaks while one runs.
const Goroutine = "github.com/sluice-go/sluice/internal/child.(*Process).run"

// Process is a child that dies with this one. It is safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended and was waited for
}

// Start starts cmd, whose SysProcAttr it sets.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = diesWithParent()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run keeps its OS thread until the child has ended: Linux kills the child when the thread that made it ends, not
// when the process does.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // it is always killed
	}
}

// Kill ends the child, also one that was stopped by a signal, and waits for it. It may be called twice.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Ended tells whether the child has ended by itself.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
