//go:build !linux

package redistest

import "syscall"

// diesWithParent can ask for nothing here: a child outlives a test binary that panics.
func diesWithParent() *syscall.SysProcAttr { return nil }
