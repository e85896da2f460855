//go:build unix

package service

import "syscall"

// nonblock lets a pipe that nobody writes to be opened at once, to be seen for what it is.
const nonblock = syscall.O_NONBLOCK
