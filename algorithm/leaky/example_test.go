package leaky_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/leaky"
)

// Ten leave a second, three places: of four that come at once, three wait their turn and one is turned away.
func Example() {
	queue, err := leaky.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	var state algorithm.State
	now := algorithm.Clock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for range 4 {
		var d algorithm.Decision
		state, d = queue.Take(state, now, 1)
		fmt.Println(d.Allowed, d.Delay, d.RetryAfter)
	}
	// Output:
	// true 0s 0s
	// true 100ms 0s
	// true 200ms 0s
	// false 0s 100ms
}
