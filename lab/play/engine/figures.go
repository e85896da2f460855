package engine

// Figures is what a lane has counted since the beginning. All are requests, unless said otherwise.
type Figures struct {
	Asked, Allowed, Denied int64
	Delayed                int64 // allowed, with a Delay above 0
	Units                  int64 // units allowed
	Largest                int64 // units of the first client in its fullest closed window of Setup.Window
	LargestEnd             int64 // µs: when that window ended
	LargestActing          int64 // the same, by when requests act: after their Delay
	WorstDelay, DelaySum   int64 // µs
	AwayAsked, AwayAllowed int64 // while Redis was away
	Keys                   int64 // that a store of this lane holds now
}

// fullest finds the most units in any closed window of a length, of units that come in order of time.
type fullest struct {
	length int64 // µs
	log    []entry
	head   int // log[:head] is out of the window
	sum    int64
	most   int64
	end    int64 // µs
}

type entry struct{ at, n int64 }

// add counts n units at a time, and returns how many there are in the window that ends there.
func (f *fullest) add(at, n int64) int64 {
	for f.head < len(f.log) && f.log[f.head].at < at-f.length {
		f.sum -= f.log[f.head].n
		f.head++
	}
	if f.head > len(f.log)/2 {
		f.log = append(f.log[:0], f.log[f.head:]...)
		f.head = 0
	}
	if last := len(f.log) - 1; last >= f.head && f.log[last].at == at {
		f.log[last].n += n
	} else {
		f.log = append(f.log, entry{at, n})
	}
	f.sum += n
	if f.sum > f.most {
		f.most, f.end = f.sum, at
	}
	return f.sum
}

func (f fullest) clone() fullest {
	f.log = append([]entry(nil), f.log[f.head:]...)
	f.head = 0
	return f
}
