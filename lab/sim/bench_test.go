package sim

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// BenchmarkHour is an hour at 1,000 arrivals a second through the four algorithms: 14,400,000 decisions.
func BenchmarkHour(b *testing.B) {
	for b.Loop() {
		for _, name := range Algorithms()[:4] {
			l, err := New(name, algorithm.Limit{Count: 600, Period: time.Second})
			if err != nil {
				b.Fatal(err)
			}
			f, err := Run(l, Traffic{Shape: Poisson{Rate: 1000}, Subjects: 100, Skew: 1}, Options{Duration: time.Hour, Seed: 1, OneKey: true})
			if err != nil || f.Denied == 0 {
				b.Fatal(f, err)
			}
		}
	}
}
