//go:build linux

package soak

import (
	"fmt"
	"slices"
	"testing"
)

// sample is what one process takes up at one moment.
type sample struct {
	Goroutines int64 `json:"goroutines"`
	Files      int64 `json:"open_files"`
	Heap       int64 `json:"heap_bytes"` // with what is not collected yet
	Resident   int64 `json:"resident_bytes"`
}

// halves compares the second quarter of a soak with its last: in the first, tables that are bounded fill up.
type halves struct {
	Second sample `json:"second_quarter"`
	Last   sample `json:"last_quarter"`
}

func quarters(all []sample) halves {
	n := len(all)
	return halves{Second: typical(all[n/4 : n/2]), Last: typical(all[n*3/4:])}
}

// typical is the median; of the heap, which is a saw-tooth, the tenth part: what is left after collections.
func typical(some []sample) sample {
	at := func(part float64, of func(sample) int64) int64 {
		if len(some) == 0 {
			return 0
		}
		values := make([]int64, len(some))
		for i, s := range some {
			values[i] = of(s)
		}
		slices.Sort(values)
		return values[int(part*float64(len(values)))]
	}
	return sample{
		Goroutines: at(0.5, func(s sample) int64 { return s.Goroutines }),
		Files:      at(0.5, func(s sample) int64 { return s.Files }),
		Heap:       at(0.1, func(s sample) int64 { return s.Heap }),
		Resident:   at(0.5, func(s sample) int64 { return s.Resident }),
	}
}

// faults tells what has grown. A tenth and a little more is what two looks at a steady process differ by. Half of the soak
// lies between the two quarters, at 1,000 requests a second to each process: 150,000 of them in five minutes, 1.8 million in
// an hour. A goroutine that stays in each thousand is 150 or 1,800 more; the heap's 4 MB are passed by 27 bytes that stay
// of each request, or by 2.
func (h halves) faults() (found []string) {
	for _, c := range []struct {
		what         string
		before, then int64
		slack        int64
	}{
		{"goroutines", h.Second.Goroutines, h.Last.Goroutines, 20},
		{"open files", h.Second.Files, h.Last.Files, 20},
		{"bytes of heap", h.Second.Heap, h.Last.Heap, 4 << 20},
		{"resident bytes", h.Second.Resident, h.Last.Resident, 8 << 20},
	} {
		if most := c.before + c.before/10 + c.slack; c.then > most {
			found = append(found, fmt.Sprintf("%d %s in the last quarter, %d in the second: want at most %d", c.then, c.what, c.before, most))
		}
	}
	return found
}

// A leak is seen, a saw-tooth is none.
func TestFlat(t *testing.T) {
	history := func(at func(i int64) sample) []sample {
		all := make([]sample, 60)
		for i := range all {
			all[i] = at(int64(i))
		}
		return all
	}
	steady := sample{Goroutines: 100, Files: 80, Heap: 20 << 20, Resident: 60 << 20}
	for _, c := range []struct {
		name   string
		all    []sample
		faults int
	}{
		{"steady", history(func(int64) sample { return steady }), 0},
		{"a saw-tooth, and a busy moment at the end", history(func(i int64) sample {
			s := steady
			s.Heap += i % 7 * (8 << 20)
			if i == 58 {
				s.Goroutines += 500
			}
			return s
		}), 0},
		{"tables that fill in the first quarter", history(func(i int64) sample {
			s := steady
			s.Heap += min(i, 15) * (2 << 20)
			s.Resident += min(i, 15) * (2 << 20)
			return s
		}), 0},
		{"goroutines that stay", history(func(i int64) sample { s := steady; s.Goroutines += i * 5; return s }), 1},
		{"files that stay open", history(func(i int64) sample { s := steady; s.Files += i * 2; return s }), 1},
		{"memory that stays", history(func(i int64) sample { s := steady; s.Heap += i << 18; s.Resident += i << 20; return s }), 2},
	} {
		if got := quarters(c.all).faults(); len(got) != c.faults {
			t.Errorf("%s: %q, want %d faults", c.name, got, c.faults)
		}
	}
}
