package lab

import (
	"testing"

	"go.uber.org/goleak"
)

// No experiment leaves a goroutine, nor with it a process, which has one.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
