package inprocess

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/sluice-go/sluice/bench/load"
)

// Memory is the bytes that a key takes in a contender which holds that many.
type Memory struct {
	Name  string  `json:"name"`
	Keys  int     `json:"keys"`
	Bytes float64 `json:"bytes_per_key"`
}

// MeasureMemory fills every keyed contender with so many keys. Each key is a string of its own, as a request's is: who
// keeps it pays for it.
func MeasureMemory(ctx context.Context, sizes []int, step func(name string)) ([]Memory, error) {
	var all []Memory
	for _, n := range sizes {
		keys := load.Keys(n)
		for _, c := range All() {
			if !c.Keyed {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			step(fmt.Sprintf("%s, %d keys", c.Name, n))
			before := heap()
			l, err := c.Open(plenty)
			if err != nil {
				return nil, fmt.Errorf("inprocess: %s: %w", c.Name, err)
			}
			for _, k := range keys {
				l.Take(strings.Clone(k))
			}
			all = append(all, Memory{c.Name, n, max(0, heap()-before) / float64(n)})
			if l.Close != nil {
				l.Close()
			}
			runtime.KeepAlive(l)
		}
		runtime.KeepAlive(keys)
	}
	return all, nil
}

// heap is the bytes that are reachable.
func heap() float64 {
	runtime.GC()
	runtime.GC() // the first one runs finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
