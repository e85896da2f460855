package lab

import (
	"math"
	"slices"
	"strings"
	"time"
)

// latencies are times that calls took.
type latencies []time.Duration

// quantile returns the least time that a part q of the calls, 0 to 1, did not exceed, in ms; 0 of no calls. It sorts l.
func (l latencies) quantile(q float64) float64 {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return ms(l[max(0, int(math.Ceil(q*float64(len(l))))-1)])
}

// ms is a time in milliseconds, to the µs.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// withoutZeros is a duration without units that are zero: 24h, 1m1s, 1.5s.
func withoutZeros(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
