package sim

import (
	"math/bits"
	"time"
)

// fineness is the bits of a time that a histogram keeps: a part is at most 1/128 of its times wide.
const fineness = 7

// histogram counts times by their size, in parts of which none is wider than 1 % of its times.
type histogram struct {
	parts []int64
	count int64
	sum   float64 // µs
	most  int64   // µs
}

func (h *histogram) add(µs int64) {
	i := part(µs)
	for i >= len(h.parts) {
		h.parts = append(h.parts, make([]int64, 1<<fineness)...)
	}
	h.parts[i]++
	h.count++
	h.sum += float64(µs)
	h.most = max(h.most, µs)
}

func part(µs int64) int {
	if µs < 2<<fineness {
		return int(µs)
	}
	shift := bits.Len64(uint64(µs)) - fineness - 1
	return (shift+1)<<fineness + int(µs>>shift) - 1<<fineness
}

// upper is the largest time in a part.
func upper(part int) int64 {
	if part < 2<<fineness {
		return int64(part)
	}
	shift := part>>fineness - 1
	low := int64(part&(1<<fineness-1) + 1<<fineness)
	return (low+1)<<shift - 1
}

// quantile is a time that at least a share q of the times do not exceed: the least such one, or at most 1 % above.
func (h *histogram) quantile(q float64) time.Duration {
	rest := int64(q*float64(h.count) + 0.999999)
	for i, n := range h.parts {
		if rest -= n; rest <= 0 && h.count > 0 {
			return µs(min(upper(i), h.most))
		}
	}
	return µs(h.most)
}

func (h *histogram) mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.count) * float64(time.Microsecond))
}
