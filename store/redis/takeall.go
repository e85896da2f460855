package redis

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// TakeAll decides asks together, all or none. It is atomic on one Redis node, and anywhere if all asks have the same
// subject, whose keys lie on one slot. On a Cluster, on a Ring, and on a node that has answered CROSSSLOT, asks of
// several subjects are charged in order, and what was charged is given back on a refusal; others may see that.
func (s *Store) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	if len(asks) == 0 {
		return sluice.Sum(nil), nil
	}
	for _, a := range asks {
		script, _ := a.Strategy.Lua()
		if err := checkScript(script); err != nil {
			return sluice.Verdict{}, err
		}
	}
	if !s.together(asks) {
		return sluice.TakeInOrder(ctx, single{s}, asks)
	}
	return s.takeAny(ctx, asks)
}

// together tells whether one script call can take all asks.
func (s *Store) together(asks []sluice.Ask) bool {
	if s.oneNode && !s.sharded.Load() {
		return true
	}
	return !slices.ContainsFunc(asks, func(a sluice.Ask) bool { return a.Key.Subject != asks[0].Key.Subject })
}

// single hides a store's TakeAll.
type single struct{ s *Store }

func (s single) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	return s.s.Take(ctx, a)
}

// takeAny takes any asks, whose keys lie on one node as far as we know, with one script call.
func (s *Store) takeAny(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	algorithms := make([]*algorithm.Script, 0, len(asks))
	for _, a := range asks {
		script, _ := a.Strategy.Lua()
		if err := checkScript(script); err != nil {
			return sluice.Verdict{}, err
		}
		if !slices.Contains(algorithms, script) {
			algorithms = append(algorithms, script)
		}
	}
	slices.SortFunc(algorithms, func(a, b *algorithm.Script) int { return cmp.Compare(a.Name, b.Name) })

	keys := make([]string, len(asks))
	args := make([]any, 0, 1+9*len(asks))
	for i, a := range asks {
		script, _ := a.Strategy.Lua()
		keys[i] = s.key(a.Key, script.Name)
		args = append(args, keys[i])
	}
	args = append(args, s.now())
	for _, a := range asks {
		script, params := a.Strategy.Lua()
		n := min(max(a.N, -algorithm.Bound), algorithm.Bound)
		at := min(max(a.At, -algorithm.Bound), algorithm.Bound)
		args = append(args, slices.Index(algorithms, script)+1, int(a.Mode), n, at, len(params))
		for _, p := range params {
			args = append(args, p)
		}
	}

	reply, err := s.run(ctx, s.scripts.any(algorithms), len(keys), args)
	switch {
	case err == nil:
		return readAny(asks, keys, reply)
	case len(asks) > 1 && crossSlot(err):
		s.sharded.Store(true)
		return sluice.TakeInOrder(ctx, single{s}, asks)
	case len(asks) > 1 && tryAgain(err): // a slot on its way: its keys are on two nodes
		return sluice.TakeInOrder(ctx, single{s}, asks)
	}
	return sluice.Verdict{}, classify(ctx, err)
}
