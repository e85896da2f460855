//go:build !linux

package child

import "syscall"

// diesWithParent can ask for nothing here: a child outlives a process that panics.
func diesWithParent() *syscall.SysProcAttr { return nil }
