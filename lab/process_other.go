//go:build !linux

package lab

import "syscall"

// diesWithParent can ask for nothing here: a child outlives a process that is killed.
func diesWithParent() *syscall.SysProcAttr { return nil }
