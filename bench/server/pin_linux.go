package server

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin keeps a process, all of its threads, on the given CPU. Threads and processes that it makes later inherit that.
func Pin(pid, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return assign(pid, &set)
}

// PinCallers keeps this process on a CPU, with GOMAXPROCS 1, until the function that it returns is called.
func PinCallers(cpu int) (release func() error, err error) {
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("server: affinity: %w", err)
	}
	procs := runtime.GOMAXPROCS(1)
	release = func() error {
		runtime.GOMAXPROCS(procs)
		return assign(os.Getpid(), &before)
	}
	if err := Pin(os.Getpid(), cpu); err != nil {
		_ = release()
		return nil, err
	}
	return release, nil
}

// assign gives every thread of a process a set of CPUs. A thread may be made meanwhile by one that was not assigned yet,
// so it looks twice.
func assign(pid int, set *unix.CPUSet) error {
	for range 2 {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return fmt.Errorf("server: pin: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(id, set); err != nil && err != unix.ESRCH { // ESRCH: it has ended
				return fmt.Errorf("server: pin thread %d: %w", id, err)
			}
		}
	}
	return nil
}

// CPUs returns the CPUs that this process may use.
func CPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}
