package lab

import (
	"sync"
	"time"

	"github.com/sluice-go/sluice"
)

// tally counts what one fleet was told.
type tally struct {
	mu     sync.Mutex
	counts OutageVariant
}

func newTally(run time.Duration) *tally {
	seconds := (run + time.Second - 1) / time.Second
	return &tally{counts: OutageVariant{PerSecond: make([]int64, seconds)}}
}

// add counts a decision made at a time since the run's start. One that comes after its end counts in its last second.
func (t *tally) add(at, took time.Duration, d sluice.Decision, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counts
	c.Asked++
	c.Slowest = max(c.Slowest, float64(took.Microseconds())/1e3)
	if err != nil {
		c.Errors++
		return
	}
	switch d.Source {
	case sluice.Local:
		c.Local++
	case sluice.Assumed:
		c.Assumed++
	default:
		c.Shared++
	}
	if d.Allowed {
		c.Admitted += d.Charged
		c.PerSecond[min(int(at/time.Second), len(c.PerSecond)-1)] += d.Charged
	}
}

// result is what was counted, as a result of v.
func (t *tally) result(v OutageVariant, p OutageParams) OutageVariant {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.counts
	r.Name, r.Mode, r.Share, r.Carry = v.Name, v.Mode, v.Share, v.Carry
	r.Bound = p.bound()
	r.Ratio = float64(r.Admitted) / r.Bound
	r.Lost = max(0, min(float64(r.Asked), r.Bound)-float64(r.Admitted))
	for at, n := range r.PerSecond {
		if at > 0 && (n > r.WorstSecond || r.WorstAt == 0) {
			r.WorstSecond, r.WorstAt = n, at
		}
	}
	return r
}
