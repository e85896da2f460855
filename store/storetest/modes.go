package storetest

import (
	"math"

	"github.com/sluice-go/sluice"
)

var modes = []Case{{
	Name: "PeekChargesNothing",
	Rule: "Peek answers for N and charges nothing: Remaining and ResetAfter are as they stand, N not deducted",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			end := ends(p.charge(st, k, 2))
			for range 3 {
				d := p.peek(st, k, 3)
				p.allows("Peek 3 of 3", d, 0, 3)
				p.want(ends(d) == end, "Peek moved the end of the state by %d µs", ends(d)-end)
				d = p.peek(st, k, 4)
				p.denies("Peek 4 of 3", d, 3)
				p.want(ends(d) == end, "Peek moved the end of the state by %d µs", ends(d)-end)
			}
			p.allows("a charge of 3 after peeks", p.charge(st, k, 3), 3, 0)
		})
	},
}, {
	Name: "UpToTakesWhatFits",
	Rule: "UpTo charges as much of N as fits: all, a part, or none. It is allowed if it charged any, or if N is 0",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			p.allows("UpTo 3 of 5", p.upTo(st, k, 3), 3, 2)
			p.allows("UpTo 10 of 2", p.upTo(st, k, 10), 2, 0)
			d := p.upTo(st, k, 1)
			p.denies("UpTo 1 of 0", d, 0)
			p.want(d.RetryAfter != sluice.Never, "UpTo 1 of 0: RetryAfter Never")
			d = p.upTo(st, k, 6)
			p.denies("UpTo 6 of 0", d, 0)
			p.want(d.RetryAfter == sluice.Never, "UpTo 6 of 0 with a burst of 5: RetryAfter %v, want Never, which is for the whole N", d.RetryAfter)
			p.allows("UpTo 0 of 0", p.upTo(st, k, 0), 0, 0)
			p.allows("UpTo of the largest number, on a fresh key", p.upTo(st, p.key(), math.MaxInt64), 5, 0)
		})
	},
}, {
	Name: "SettleGivesBack",
	Rule: "Settle with N < 0 gives back what was charged, and no more: it never widens a limit",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			d := p.charge(st, k, 4)
			p.allows("Settle -3 of 4", p.settle(st, k, -3, d.At), 0, 4)
			p.allows("Settle 0", p.settle(st, k, 0, d.At), 0, 4)
			for _, n := range []int64{-100, -1 << 53, math.MinInt64} {
				d = p.settle(st, k, n, d.At)
				p.allows("Settle of more than was charged", d, 0, 5)
				p.want(d.ResetAfter == 0, "all was given back: ResetAfter %v, want 0", d.ResetAfter)
			}
			p.allows("a charge of all", p.charge(st, k, 5), 5, 0)
			p.denies("a charge of 1 more", p.charge(st, k, 1), 0)
		})
	},
}, {
	Name: "SettleOwes",
	Rule: "Settle with N > 0 adds to what was charged whether or not it fits; what is owed stops at one burst",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			d := p.charge(st, k, 2)
			p.allows("Settle +2 of 3", p.settle(st, k, 2, d.At), 0, 1)
			p.allows("Settle +4 of 1", p.settle(st, k, 4, d.At), 0, 0)
			p.denies("a charge of 1 with 3 owed", p.charge(st, k, 1), 0)
			p.allows("Settle -3", p.settle(st, k, -3, d.At), 0, 0)
			p.denies("a charge of 1 with none owed", p.charge(st, k, 1), 0)
			p.allows("Settle -1", p.settle(st, k, -1, d.At), 0, 1)

			for _, n := range []int64{100, 1 << 53, math.MaxInt64} {
				d = p.settle(st, k, n, d.At)
			}
			p.allows("Settle -5 with one burst owed", p.settle(st, k, -5, d.At), 0, 0)
			p.allows("Settle -2 after that", p.settle(st, k, -2, d.At), 0, 2)
		})
	},
}, {
	Name: "ResetForgets",
	Rule: "Reset makes a key as one never seen, and leaves other keys and other algorithms on the same key alone",
	run: func(p *probe) {
		p.each(still(3), func(st sluice.Strategy) {
			k, neighbour := p.key(), p.key()
			p.reset(st, k)
			p.drain(st, k)
			p.drain(st, neighbour)
			d := p.reset(st, k)
			p.allows("Reset", d, 0, 3)
			p.want(d.ResetAfter == 0, "Reset: ResetAfter %v, want 0", d.ResetAfter)
			p.allows("a charge after Reset", p.charge(st, k, 1), 1, 2)
			p.denies("a charge of another key", p.charge(st, neighbour, 1), 0)
		})
		for i := range algorithms {
			st, other := sluice.Must(algorithms[i](still(3))), sluice.Must(algorithms[(i+1)%len(algorithms)](still(3)))
			p.using(st)
			k := p.key()
			p.charge(st, k, 1)
			p.charge(other, k, 2)
			p.reset(other, k)
			p.allows("a charge after another algorithm was reset", p.charge(st, k, 1), 1, 1)
		}
	},
}}
