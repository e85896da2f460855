package storetest

import (
	"math"

	"github.com/sluice-go/sluice"
)

var charges = []Case{{
	Name: "AllowThenDeny",
	Rule: "a limit of 3 gives Remaining 2, 1, 0, 0, 0 and allows three times; a denial says when to retry",
	run: func(p *probe) {
		p.each(still(3), func(st sluice.Strategy) {
			k := p.key()
			for left := int64(2); left >= 0; left-- {
				p.allows("a charge of 1 of 3", p.charge(st, k, 1), 1, left)
			}
			for range 2 {
				d := p.charge(st, k, 1)
				p.denies("a charge of 1 of 0", d, 0)
				p.want(d.RetryAfter != sluice.Never, "a denial that time will end has RetryAfter Never")
			}
		})
	},
}, {
	Name: "ExactLimit",
	Rule: "exactly the limit passes, whatever its number of digits: words are compared as numbers, not as text",
	run: func(p *probe) {
		for _, l := range []int64{9, 10, 11, 99, 100, 101, 1000} {
			p.each(still(l), func(st sluice.Strategy) {
				k, passed := p.key(), int64(0)
				for range l + 3 {
					passed += p.charge(st, k, 1).Charged
				}
				p.want(passed == l, "%d of %d asks passed, want %d", passed, l+3, l)
			})
		}
		p.each(still(10_000), func(st sluice.Strategy) {
			k := p.key()
			for i := int64(1); i <= 10; i++ {
				p.allows("a charge of 999 of 10000", p.charge(st, k, 999), 999, 10_000-999*i)
			}
			p.denies("a charge of 11 of 10", p.charge(st, k, 11), 10)
			p.allows("a charge of 10 of 10", p.charge(st, k, 10), 10, 0)
		})
	},
}, {
	Name: "ZeroIsFree",
	Rule: "n = 0 is allowed, also on an empty bucket, and charges nothing",
	run: func(p *probe) {
		p.each(still(2), func(st sluice.Strategy) {
			k := p.key()
			d := p.charge(st, k, 0)
			p.allows("n = 0 on a fresh key", d, 0, 2)
			p.want(d.ResetAfter == 0, "n = 0 on a fresh key: ResetAfter %v, want 0", d.ResetAfter)
			p.drain(st, k)
			p.allows("n = 0 on a drained key", p.charge(st, k, 0), 0, 0)
			p.denies("n = 1 after that", p.charge(st, k, 1), 0)
		})
	},
}, {
	Name: "NegativeIsErrCost",
	Rule: "n < 0 is ErrCost outside Settle, whatever the mode, and changes nothing: it must not mint capacity (C7)",
	run: func(p *probe) {
		p.each(still(10), func(st sluice.Strategy) {
			k := p.key()
			p.charge(st, k, 4)
			for _, left := range []int64{6, 0} {
				for _, n := range []int64{-1, -1000, math.MinInt64} {
					for _, m := range []sluice.Mode{sluice.Charge, sluice.Peek, sluice.UpTo} {
						p.refuses(sluice.Ask{Strategy: st, Key: k, N: n, Mode: m})
					}
				}
				d := p.peek(st, k, 0)
				p.want(d.Remaining == left, "after negative costs: Remaining %d, want %d as before", d.Remaining, left)
				p.drain(st, k)
			}
			p.denies("a charge of 1 after that", p.charge(st, k, 1), 0)
		})
	},
}, {
	Name: "AboveBurstIsNever",
	Rule: "a cost above the burst is denied with RetryAfter Never, charges nothing, and is no error (C5)",
	run: func(p *probe) {
		p.each(still(3), func(st sluice.Strategy) {
			k := p.key()
			for left := int64(3); left >= 0; left-- {
				for _, n := range []int64{4, 1 << 31, 1 << 53, math.MaxInt64} {
					for _, d := range []sluice.Decision{p.charge(st, k, n), p.peek(st, k, n)} {
						p.denies("a cost above the burst", d, left)
						p.want(d.RetryAfter == sluice.Never, "n = %d of 3: RetryAfter %v, want Never", n, d.RetryAfter)
					}
				}
				p.upTo(st, k, 1)
			}
		})
	},
}, {
	Name: "DenialChangesNothing",
	Rule: "a denial writes nothing: what is left stays, and so does the time at which the state ends (C1, C11)",
	run: func(p *probe) {
		p.each(still(5), func(st sluice.Strategy) {
			k := p.key()
			d := p.charge(st, k, 3)
			end := ends(d)
			for range 20 {
				d = p.charge(st, k, 3)
				p.denies("a charge of 3 of 2", d, 2)
				p.want(ends(d) == end, "a denial moved the end of the state by %d µs", ends(d)-end)
			}
			p.allows("a charge of 2 of 2 after denials", p.charge(st, k, 2), 2, 0)
		})
	},
}, {
	Name: "UnseenKeysMakeNoState",
	Rule: "a Peek, a denial, n = 0, a refund or a Reset of a key never seen makes no state: memory can't be filled by it",
	run: func(p *probe) {
		p.each(still(3), func(st sluice.Strategy) {
			k := p.key()
			before, known := p.keeps()
			p.peek(st, k, 1)
			p.charge(st, k, 0)
			p.charge(st, k, 4)
			p.upTo(st, k, 0)
			d := p.settle(st, k, -1, 0)
			p.reset(st, k)
			p.want(d.Remaining == 3 && d.ResetAfter == 0, "a refund of a key never seen: Remaining %d, ResetAfter %v; want 3, 0", d.Remaining, d.ResetAfter)
			d = p.peek(st, k, 3)
			p.want(d.Allowed && d.Remaining == 3 && d.ResetAfter == 0,
				"a key that was only looked at: Allowed %v, Remaining %d, ResetAfter %v; want true, 3, 0", d.Allowed, d.Remaining, d.ResetAfter)
			if after, _ := p.keeps(); known {
				p.want(after == before, "Len %d, want %d as before", after, before)
			}
		})
	},
}}

// ends is when the state will be as good as new, in µs since the Unix epoch.
func ends(d sluice.Decision) int64 { return d.At + d.ResetAfter.Microseconds() }
