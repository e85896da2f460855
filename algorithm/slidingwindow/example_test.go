package slidingwindow_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
)

// Ten in 10 s: what passed at the end of one window still weighs in the next, and fades.
func Example() {
	window, err := slidingwindow.New(algorithm.Limit{Count: 10, Period: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) int64 { return algorithm.Clock(noon.Add(d)) }

	state, d := window.Take(algorithm.State{}, at(9*time.Second), 10)
	fmt.Println(d.Allowed, d.Remaining)

	state, d = window.Take(state, at(10*time.Second), 1)
	fmt.Println(d.Allowed, d.RetryAfter)

	_, d = window.Take(state, at(15*time.Second), 1)
	fmt.Println(d.Allowed, d.Remaining)
	// Output:
	// true 0
	// false 1s
	// true 4
}
