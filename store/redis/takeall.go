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
		if err := s.scripts.check(script); err != nil {
			return sluice.Verdict{}, err
		}
	}
	if v, ok := s.knownRefusal(asks); ok {
		return v, nil
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
	w := s.ownCallOf(asks)
	reply, err := s.call(ctx, s.hash(asks[0].Key.Subject), w)
	for i := range asks {
		if asks[i].Mode != sluice.Peek {
			s.denials.forget(s.hash(asks[i].Key.Subject), &asks[i])
		}
	}
	switch {
	case err == nil:
		return readAny(asks, w.keys, reply)
	case len(asks) > 1 && crossSlot(err):
		s.sharded.Store(true)
		return sluice.TakeInOrder(ctx, single{s}, asks)
	case len(asks) > 1 && tryAgain(err): // a slot on its way: its keys are on two nodes
		return sluice.TakeInOrder(ctx, single{s}, asks)
	}
	return sluice.Verdict{}, classify(ctx, err)
}

// ownCallOf makes the script call of any asks.
func (s *Store) ownCallOf(asks []sluice.Ask) *ownCall {
	algorithms := make([]*algorithm.Script, 0, len(asks))
	for _, a := range asks {
		if script, _ := a.Strategy.Lua(); !slices.Contains(algorithms, script) {
			algorithms = append(algorithms, script)
		}
	}
	slices.SortFunc(algorithms, func(a, b *algorithm.Script) int { return cmp.Compare(a.Name, b.Name) })

	w := &ownCall{script: s.scripts.any(algorithms), keys: make([]string, len(asks)), args: make([]any, 0, 1+8*len(asks))}
	w.args = append(w.args, s.now())
	for i, a := range asks {
		script, params := a.Strategy.Lua()
		w.keys[i] = s.key(a.Key, script.Name)
		n := min(max(a.N, -algorithm.Bound), algorithm.Bound)
		at := min(max(a.At, -algorithm.Bound), algorithm.Bound)
		w.args = append(w.args, slices.Index(algorithms, script)+1, int(a.Mode), n, at, len(params))
		w.args = appendNumbers(w.args, params)
	}
	return w
}

// call makes a script call of its own, among those of others unless that is off.
func (s *Store) call(ctx context.Context, hash uint64, w *ownCall) (any, error) {
	if s.alone {
		args := make([]any, 0, len(w.keys)+len(w.args))
		for _, k := range w.keys {
			args = append(args, k)
		}
		return s.run(ctx, w.script, len(w.keys), append(args, w.args...))
	}
	r := newRequest()
	r.own = w
	if err := s.lane(hash, w.keys[0]).do(ctx, r); err != nil {
		return nil, err // r may be in a batch yet
	}
	if err := r.failure(); err != nil {
		return nil, err
	}
	reply := r.reply
	r.release()
	return reply, nil
}
