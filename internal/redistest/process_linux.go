package redistest

import "syscall"

// diesWithParent has the kernel kill the child where this process ends without cleaning up: a panic, a timeout, a
// kill.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
