package engine

import "math"

// Bins is the number of columns of a timeline.
const Bins = 240

// bins counts what happened in each column of time, for the columns that the timeline shows.
type bins struct {
	width int64 // µs
	last  int64 // number of the running column: it began at last·width
	cols  [Bins]Bin
}

// Bin is one column of the timeline: requests, and the level at its end.
type Bin struct {
	Allowed, Delayed, Denied int32   // that came; Delayed are not among Allowed
	Acting                   int32   // that began to act, after their Delay
	Level                    float32 // units spent, counted or waiting; NaN where nothing is kept
	Away                     bool    // Redis was away at its end
}

func (b *bins) at() *Bin { return &b.cols[b.last%Bins] }

// advance closes the columns that end by a time, asking for the level at each end.
func (b *bins) advance(to int64, away bool, level func(at int64) float64) {
	target := to / b.width
	if b.last < target-Bins {
		b.last = target - Bins
	}
	for b.last < target {
		c := b.at()
		c.Level, c.Away = float32(level((b.last+1)*b.width)), away
		b.last++
		*b.at() = Bin{Level: float32(math.NaN())}
	}
}

// each calls f with the columns from old to new, and when each began, µs. Those before time 0 are left out.
func (b *bins) each(f func(began int64, c Bin)) {
	for n := max(0, b.last-Bins+1); n <= b.last; n++ {
		f(n*b.width, b.cols[n%Bins])
	}
}
