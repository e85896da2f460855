package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// together takes asks, and checks what holds of every verdict.
func (p *probe) together(asks ...sluice.Ask) sluice.Verdict {
	v, err := p.takeAll(p.ctx, asks)
	p.want(err == nil, "TakeAll of %d: error: %v", len(asks), err)
	p.want(len(v.Each) == len(asks), "TakeAll of %d: %d decisions in Each", len(asks), len(v.Each))
	denied := slices.ContainsFunc(v.Each, func(d sluice.Decision) bool { return !d.Allowed })
	p.want(v.Allowed == !denied, "Allowed %v; want it only if all of Each are: %+v", v.Allowed, v.Each)
	p.want(v.Refused < 0 || !v.Allowed, "Allowed, and ask %d refused", v.Refused)
	p.want(v.Refused >= -1 && v.Refused < len(asks), "Refused %d of %d", v.Refused, len(asks))
	sum := sluice.Verdict{Refused: v.Refused, Each: v.Each}
	for i, d := range v.Each {
		switch {
		case v.Refused < 0 || i < v.Refused:
			if v.Refused < 0 {
				wrong := p.incoherent(asks[i], d)
				p.want(wrong == "", "Each[%d] %+v: %s", i, d, wrong)
			}
		case i > v.Refused:
			_, fresh := asks[i].Strategy.Take(algorithm.State{}, 0, 0)
			p.want(d == sluice.Decision{Limit: fresh.Limit}, "Each[%d] %+v, after the refusing ask %d: want Limit alone", i, d, v.Refused)
			continue
		}
		if v.Refused >= 0 {
			p.want(!d.Allowed && d.Charged == 0 && d.Delay == 0, "Each[%d] of a refused call: %+v; want Allowed false, Charged 0, Delay 0", i, d)
		}
		if i == 0 || d.Remaining < sum.Remaining {
			sum.Remaining = d.Remaining
		}
		sum.Charged += d.Charged
		sum.RetryAfter = max(sum.RetryAfter, d.RetryAfter)
		sum.Delay = max(sum.Delay, d.Delay)
	}
	if v.Refused >= 0 {
		d := v.Each[v.Refused]
		p.want(d.RetryAfter > 0, "Each[%d] refused: RetryAfter %v", v.Refused, d.RetryAfter)
		p.want(v.Limit == d.Limit, "Limit %d, want %d of the ask that binds", v.Limit, d.Limit)
	}
	p.want(v.Charged == sum.Charged && v.Remaining == sum.Remaining && v.RetryAfter == sum.RetryAfter && v.Delay == sum.Delay,
		"the verdict's Charged %d, Remaining %d, RetryAfter %v, Delay %v; want the total, the least, the greatest, the greatest of Each: %d, %d, %v, %v",
		v.Charged, v.Remaining, v.RetryAfter, v.Delay, sum.Charged, sum.Remaining, sum.RetryAfter, sum.Delay)
	return v
}

// takeAll calls the store's own method where it has one, so that it can't lean on the checks of sluice.TakeAll.
func (p *probe) takeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if b, ok := p.store.(sluice.Batcher); ok {
		return b.TakeAll(ctx, asks)
	}
	return sluice.TakeAll(ctx, p.store, asks)
}

// left fails unless so much is left of a key.
func (p *probe) left(what string, st sluice.Strategy, k sluice.Key, want int64) {
	d := p.peek(st, k, 0)
	p.want(d.Remaining == want, "%s: Remaining %d, want %d", what, d.Remaining, want)
}

// passes fails unless the call passed.
func (p *probe) passes(what string, v sluice.Verdict) {
	p.want(v.Refused == -1, "%s: ask %d refused, want none", what, v.Refused)
}

// isRefused fails unless the ask with that number refused the call.
func (p *probe) isRefused(what string, v sluice.Verdict, by int) {
	p.want(v.Refused == by, "%s: Refused %d, want %d", what, v.Refused, by)
}

// mixed is one strategy of each algorithm, with limits of n, n+1, n+2 and n+3.
func mixed(n int64) []sluice.Strategy {
	var list []sluice.Strategy
	for i, f := range algorithms {
		list = append(list, sluice.Must(f(still(n+int64(i)))))
	}
	return list
}

var batches = []Case{{
	Name: "Batcher",
	Rule: "a store is a Batcher where its author says so: a store around a store always is",
	run: func(p *probe) {
		_, ok := p.store.(sluice.Batcher)
		p.want(ok || !p.Batcher, "%T has no method TakeAll", p.store)
	},
}, {
	Name: "TakeAllChargesAll",
	Rule: "a call whose asks all pass charges each; its verdict has the total, the least Remaining, and Refused -1",
	run: func(p *probe) {
		sts, ks := mixed(5), []sluice.Key{p.key(), p.key(), p.key(), p.key()}
		var asks []sluice.Ask
		for i, st := range sts {
			asks = append(asks, ask(st, ks[i], 2))
		}
		v := p.together(asks...)
		p.passes("four algorithms", v)
		p.want(v.Charged == 8 && v.Remaining == 3 && v.Limit == 5, "Charged %d, Remaining %d, Limit %d; want 8, 3, 5", v.Charged, v.Remaining, v.Limit)
		for i, st := range sts {
			p.using(st)
			p.allows("Each", v.Each[i], 2, int64(3+i))
			p.left("after TakeAll", st, ks[i], int64(3+i))
		}
	},
}, {
	Name: "TakeAllOfNothing",
	Rule: "no asks are allowed",
	run: func(p *probe) {
		p.passes("no asks", p.together())
		p.passes("no asks", p.together([]sluice.Ask{}...))
	},
}, {
	Name: "TakeAllRefuses",
	Rule: "a denied ask refuses the whole, and nothing is charged, whichever it is; the asks after it are not decided",
	run: func(p *probe) {
		sts := mixed(5)
		for by := range sts {
			ks := []sluice.Key{p.key(), p.key(), p.key(), p.key()}
			var asks []sluice.Ask
			for i, st := range sts {
				p.charge(st, ks[i], 1)
				asks = append(asks, ask(st, ks[i], 2))
			}
			p.drain(sts[by], ks[by])
			v := p.together(asks...)
			p.isRefused("one of four is drained", v, by)
			p.want(v.Charged == 0 && v.Remaining == 0 && v.RetryAfter > 0 && v.RetryAfter != sluice.Never,
				"Charged %d, Remaining %d, RetryAfter %v; want 0, 0, and a wait", v.Charged, v.Remaining, v.RetryAfter)
			for i, st := range sts {
				p.using(st)
				want := int64(4 + i)
				if i == by {
					want = 0
				}
				p.left("after a refused TakeAll", st, ks[i], want)
				if i <= by {
					p.want(v.Each[i].Remaining == want, "Each[%d].Remaining %d, want %d, as it stands with nothing charged", i, v.Each[i].Remaining, want)
				}
			}
			p.about = ""
		}
		st := sts[0]
		a, b := p.key(), p.key()
		v := p.together(ask(st, a, 1), ask(st, b, 6))
		p.isRefused("6 of at most 5", v, 1)
		p.want(v.RetryAfter == sluice.Never, "6 of at most 5: RetryAfter %v, want Never", v.RetryAfter)
		p.left("after a refused TakeAll", st, a, 5)
	},
}, {
	Name: "TakeAllOnOneKey",
	Rule: "asks are tried in order, each on the state that the ones before it left: a key may occur twice",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			n := func(m sluice.Mode, n int64) sluice.Ask {
				return sluice.Ask{Strategy: st, Key: k, N: n, Mode: m}
			}
			p.isRefused("3 and 3 of 5 on one key", p.together(n(sluice.Charge, 3), n(sluice.Charge, 3)), 1)
			p.left("after 3 and 3 of 5", st, k, 5)
			p.isRefused("3, then Peek 3, of 5", p.together(n(sluice.Charge, 3), n(sluice.Peek, 3)), 1)
			p.left("after 3, then Peek 3", st, k, 5)
			v := p.together(n(sluice.Peek, 5), n(sluice.Charge, 3), n(sluice.Peek, 2), n(sluice.Charge, 2), n(sluice.Charge, 0))
			p.passes("Peek 5, 3, Peek 2, 2, 0 of 5", v)
			for i, want := range []int64{5, 2, 2, 0, 0} {
				p.want(v.Each[i].Remaining == want, "Each[%d].Remaining %d, want %d", i, v.Each[i].Remaining, want)
			}
			p.left("after 3 and 2 of 5", st, k, 0)
		})
	},
}, {
	Name: "TakeAllUpToAndSettle",
	Rule: "UpTo and Settle never refuse; in a call that another ask refuses they are undone",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			empty, k, paid := p.key(), p.key(), p.key()
			p.drain(st, empty)
			at := p.charge(st, paid, 4).At
			upTo := sluice.Ask{Strategy: st, Key: k, N: 9, Mode: sluice.UpTo}
			refund := sluice.Ask{Strategy: st, Key: paid, N: -3, Mode: sluice.Settle, At: at}

			v := p.together(upTo, refund, ask(st, empty, 1))
			p.isRefused("UpTo, Settle, and a charge of a drained key", v, 2)
			p.left("UpTo in a refused call", st, k, 5)
			p.left("Settle in a refused call", st, paid, 1)

			none := upTo
			none.Key = empty
			v = p.together(none, upTo, refund, ask(st, paid, 2))
			p.passes("UpTo of a drained key", v)
			p.denies("UpTo of a drained key", v.Each[0], 0)
			p.allows("UpTo 9 of 5", v.Each[1], 5, 0)
			p.allows("Settle -3", v.Each[2], 0, 4)
			p.allows("2 of what Settle gave back", v.Each[3], 2, 2)
			p.left("after UpTo 9 of 5", st, k, 0)
			p.left("after Settle -3 and 2 more", st, paid, 2)
		})
	},
}, {
	Name: "TakeAllErrCost",
	Rule: "Reset, and a negative cost, are ErrCost in a TakeAll, and nothing is charged",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			for _, bad := range []sluice.Ask{
				{Strategy: st, Key: p.key(), Mode: sluice.Reset},
				{Strategy: st, Key: p.key(), N: -1},
				{Strategy: st, Key: p.key(), N: -1, Mode: sluice.Peek},
				{Strategy: st, Key: p.key(), N: -1, Mode: sluice.UpTo},
			} {
				for _, asks := range [][]sluice.Ask{{ask(st, k, 2), bad}, {bad, ask(st, k, 2)}, {bad}} {
					v, err := p.takeAll(p.ctx, asks)
					p.want(errors.Is(err, sluice.ErrCost), "TakeAll with %s: %+v, error %v; want ErrCost", describe(bad), v, err)
					p.want(!v.Allowed, "TakeAll with %s: ErrCost, and yet allowed", describe(bad))
				}
			}
			p.left("after ErrCost", st, k, 5)
		})
	},
}, {
	Name: "TakeAllOfMany",
	Rule: "32 asks of all algorithms, some on one key, are all charged or none",
	run: func(p *probe) {
		sts := mixed(20)
		var ks []sluice.Key
		for range 8 {
			ks = append(ks, p.key())
		}
		var asks []sluice.Ask
		for i := range 32 { // each key four times, each time another algorithm
			asks = append(asks, ask(sts[(i+i/8)%4], ks[i%8], int64(i%3)))
		}
		left := func() (all []int64) {
			for _, a := range asks {
				all = append(all, p.peek(a.Strategy, a.Key, 0).Remaining)
			}
			return all
		}
		p.passes("32 asks", p.together(asks...))
		before := left()
		for i, a := range asks {
			limit := p.peek(a.Strategy, a.Key, 0).Limit
			p.want(before[i] == limit-a.N, "ask %d of %d: Remaining %d, want %d", i, a.N, before[i], limit-a.N)
		}
		last := ask(sts[0], p.key(), 21)
		p.isRefused("33 asks, the last above its burst", p.together(append(asks[:32:32], last)...), 32)
		p.want(reflect.DeepEqual(left(), before), "a refused call changed Remaining from %v to %v", before, left())
		first := append([]sluice.Ask{last}, asks...)
		p.isRefused("33 asks, the first above its burst", p.together(first...), 0)
		p.want(reflect.DeepEqual(left(), before), "a refused call changed Remaining from %v to %v", before, left())
	},
}, {
	Name:  "TakeAllDelay",
	Rule:  "the verdict's Delay is the greatest: a caller that holds for it once has held for all",
	Timed: true,
	run: func(p *probe) {
		a, b := queue(10, time.Second, 5), queue(2, time.Second, 5)
		ka, kb := p.key(), p.key()
		p.charge(a, ka, 2)
		p.charge(b, kb, 1)
		v := p.together(ask(a, ka, 1), ask(b, kb, 1))
		p.passes("two queues", v)
		p.want(v.Each[0].Delay == 200*time.Millisecond && v.Each[1].Delay == 500*time.Millisecond && v.Delay == v.Each[1].Delay,
			"Delays %v and %v, together %v; want 200ms, 500ms, 500ms", v.Each[0].Delay, v.Each[1].Delay, v.Delay)
	},
}}
