package fixedwindow_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
)

// Three a minute, on the minute: what is used up at 12:00:45 is there again 15 s later.
func Example() {
	window, err := fixedwindow.New(algorithm.Limit{Count: 3, Period: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	state, d := window.Take(algorithm.State{}, algorithm.Clock(noon), 3)
	fmt.Println(d.Allowed, d.Remaining)

	state, d = window.Take(state, algorithm.Clock(noon.Add(45*time.Second)), 1)
	fmt.Println(d.Allowed, d.RetryAfter)

	_, d = window.Take(state, algorithm.Clock(noon.Add(time.Minute)), 1)
	fmt.Println(d.Allowed, d.Remaining)
	// Output:
	// true 0
	// false 15s
	// true 2
}
