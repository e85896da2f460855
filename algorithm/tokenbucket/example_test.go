package tokenbucket_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// A store keeps the state and runs Take; here, by hand. Ten a second with a burst of ten, full, is asked for 4 and 7.
func Example() {
	bucket, err := tokenbucket.New(algorithm.Limit{Count: 10, Period: time.Second, Burst: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	var state algorithm.State
	now := algorithm.Clock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

	state, d := bucket.Take(state, now, 4)
	fmt.Println(d.Allowed, d.Remaining, d.ResetAfter)

	_, d = bucket.Take(state, now, 7)
	fmt.Println(d.Allowed, d.Remaining, d.RetryAfter)
	// Output:
	// true 6 400ms
	// false 6 100ms
}
