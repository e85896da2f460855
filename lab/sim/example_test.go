package sim_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/lab/sim"
)

// An hour of traffic that comes and goes, whose clients obey Retry-After, under two algorithms.
func ExampleRun() {
	limit := algorithm.Limit{Count: 100, Period: 10 * time.Second, Burst: 20}
	traffic := sim.Traffic{Shape: sim.OnOff{Rate: 20, On: 3 * time.Second, Off: 7 * time.Second}}
	for _, name := range []string{"token_bucket", "leaky_bucket"} {
		l, err := sim.New(name, limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		f, err := sim.Run(l, traffic, sim.Options{Duration: time.Hour, Clients: sim.Clients{Manners: sim.Polite, Tries: 100}})
		if err != nil {
			fmt.Println(err)
			return
		}
		w := f.Windows[0]
		fmt.Printf("%s: %d of %d passed, with %d retries; at most %d in 10s, %d acting; the slowest waited %v\n",
			name, f.Admitted, f.Requests, f.Retries, w.HalfOpen, w.Acting, f.WaitMost)
	}
	// Output:
	// token_bucket: 21601 of 21601 passed, with 43560 retries; at most 60 in 10s, 60 acting; the slowest waited 1.05s
	// leaky_bucket: 21601 of 21601 passed, with 43560 retries; at most 60 in 10s, 60 acting; the slowest waited 2.95s
}
