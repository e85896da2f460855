//go:build !unix

package lab

import "time"

// cpuTime is the CPU time that this process has used; 0, since this system does not say.
func cpuTime() time.Duration { return 0 }
