package child

import "syscall"

// diesWithParent has the kernel kill the child where this process ends without cleaning up: a panic, a timeout, a
// kill. In a process group of its own the child is spared a terminal's Ctrl-C, so that it ends after those who use it.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
