package lab

import (
	"os/exec"
	"runtime"
)

// process is a child that dies with this one.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended and was waited for
}

func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = diesWithParent()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run keeps its OS thread until the child has ended: Linux kills the child when the thread that made it ends, not
// when the process does.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // it is always killed
	}
}

// kill ends the child and waits for it. It may be called twice.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// ended tells whether the child has ended by itself.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
