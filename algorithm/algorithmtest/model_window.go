package algorithmtest

import (
	"math/big"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// windowModel keeps what every window counted.
type windowModel struct {
	limit  algorithm.Limit
	period int64           // µs
	counts map[int64]int64 // by window: time / period
	last   int64           // the latest window that was written; -1: none
}

func newWindowModel(l algorithm.Limit) windowModel {
	return windowModel{limit: l, period: period(l), counts: map[int64]int64{}, last: -1}
}

// running is the window of now, or the latest one written where the clock stepped back.
func (m *windowModel) running(now int64) int64 { return max(now/m.period, m.last) }

func (m *windowModel) adjust(w, n, at int64) {
	if n > 0 || at >= w*m.period {
		// In two steps, so that no sum leaves an int64.
		n = min(max(n, -m.counts[w]), 2*m.limit.Count-m.counts[w])
		m.counts[w] += n
	}
	m.last = w
}

// until is the time from now to the start of a window.
func (m *windowModel) until(now, w int64) time.Duration {
	return time.Duration(w*m.period-now) * time.Microsecond
}

type fixedModel struct{ windowModel }

func newFixedModel(l algorithm.Limit) *fixedModel { return &fixedModel{newWindowModel(l)} }

func (m *fixedModel) Take(now, n int64) algorithm.Decision {
	w := m.running(now)
	d := algorithm.Decision{Limit: m.limit.Count, At: now}
	switch {
	case n == 0:
		d.Allowed = true
	case n > m.limit.Count:
		d.RetryAfter = algorithm.Never
	case n > m.limit.Count-m.counts[w]:
		d.RetryAfter = m.until(now, w+1)
	default:
		d.Allowed, d.Charged = true, n
		m.counts[w] += n
		m.last = w
	}
	d.Remaining = max(0, m.limit.Count-m.counts[w])
	if m.counts[w] > 0 {
		d.ResetAfter = m.until(now, w+1)
	}
	return d
}

func (m *fixedModel) Adjust(now, n, at int64) {
	w := m.running(now)
	m.adjust(w, n, at)
	if m.counts[w] == 0 {
		*m = *newFixedModel(m.limit)
	}
}

type slidingModel struct {
	windowModel
	tick int64 // µs
}

func newSlidingModel(l algorithm.Limit) *slidingModel {
	return &slidingModel{newWindowModel(l), slidingTick(l)}
}

// spent is what counts at a time at which window w runs.
func (m *slidingModel) spent(w, now int64) int64 {
	left := m.period / m.tick
	if start := w * m.period; now > start {
		left -= (now - start) / m.tick
	}
	weighed := ceilDiv(mul(m.counts[w-1], left), big.NewInt(m.period/m.tick))
	return weighed.Int64() + m.counts[w]
}

// passes searches for the first tick at which n units pass.
func (m *slidingModel) passes(w, n int64) int64 {
	low, high := int64(0), 2*m.period/m.tick // ticks since the start of window w
	for low < high {
		mid := (low + high) / 2
		now := w*m.period + mid*m.tick
		if m.spent(now/m.period, now)+n <= m.limit.Count {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return w*m.period + low*m.tick
}

func (m *slidingModel) Take(now, n int64) algorithm.Decision {
	w := m.running(now)
	d := algorithm.Decision{Limit: m.limit.Count, At: now}
	spent := m.spent(w, now)
	switch {
	case n == 0:
		d.Allowed = true
	case n > m.limit.Count:
		d.RetryAfter = algorithm.Never
	case n > m.limit.Count-spent:
		d.RetryAfter = time.Duration(m.passes(w, n)-now) * time.Microsecond
	default:
		d.Allowed, d.Charged = true, n
		m.counts[w] += n
		m.last = w
		spent += n
	}
	d.Remaining = max(0, m.limit.Count-spent)
	switch {
	case m.counts[w] > 0:
		d.ResetAfter = m.until(now, w+2)
	case m.counts[w-1] > 0:
		d.ResetAfter = m.until(now, w+1)
	}
	return d
}

func (m *slidingModel) Adjust(now, n, at int64) {
	w := m.running(now)
	m.adjust(w, n, at)
	if m.counts[w] == 0 && m.counts[w-1] == 0 {
		*m = *newSlidingModel(m.limit)
	}
}
