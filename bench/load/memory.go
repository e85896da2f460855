package load

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/server"
)

// Memory is the bytes of Redis's memory that a key takes, with its share of the tables, measured over so many keys.
func Memory(ctx context.Context, s *server.Server, c contender.Contender, keys int) (perKey float64, err error) {
	nodes := server.Nodes{s}
	if err := nodes.Flush(ctx); err != nil {
		return 0, err
	}
	l, err := c.Open(s.Addr, manyLimit)
	if err != nil {
		return 0, fmt.Errorf("load: %s: %w", c.Name, err)
	}
	defer l.Close()
	const before = 1000 // keys taken first: connections and scripts are there then
	all := Keys(before + keys)
	if err := fill(ctx, l, all[:before]); err != nil {
		return 0, fmt.Errorf("load: %s: %w", c.Name, err)
	}
	m0, err := nodes.Stats(ctx)
	if err != nil {
		return 0, err
	}
	if err := fill(ctx, l, all[before:]); err != nil {
		return 0, fmt.Errorf("load: %s: %w", c.Name, err)
	}
	m1, err := nodes.Stats(ctx)
	if err != nil {
		return 0, err
	}
	return float64(m1.Memory-m0.Memory) / float64(keys), nil
}

// fill takes each key once, or again where the call fails: a store with a short timeout may give up on a busy machine.
func fill(ctx context.Context, l contender.Limiter, keys []string) error {
	const callers = 16
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for k := i; k < len(keys) && errs[i] == nil; k += callers {
				for try := 0; try < 5; try++ {
					if _, errs[i] = l.Take(ctx, keys[k]); errs[i] == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
