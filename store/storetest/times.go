package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice"
)

// at sets the clock to d after Start.
func (p *probe) at(d time.Duration) { p.Clock.Set(Start.Add(d)) }

// times need a clock that can be set.
var times = []Case{{
	Name:  "RetryAfterIsExact",
	Rule:  "the same request passes once RetryAfter is over, and not one µs before (A1, D1)",
	Timed: true,
	run: func(p *probe) {
		rnd := rand.New(rand.NewPCG(1, 2))
		exact := func(st sluice.Strategy, k sluice.Key, n int64) {
			d := p.charge(st, k, n)
			if d.Allowed {
				return
			}
			p.Clock.Advance(d.RetryAfter - time.Microsecond)
			p.want(!p.peek(st, k, n).Allowed, "%d units, RetryAfter %v: passes 1µs before", n, d.RetryAfter)
			p.Clock.Advance(time.Microsecond)
			p.want(p.charge(st, k, n).Allowed, "%d units, RetryAfter %v: denied again when it is over", n, d.RetryAfter)
		}
		for _, l := range []sluice.Limit{per(1, time.Hour), per(3, 5*time.Second), per(7, time.Second), per(10, 10*time.Second), per(100, time.Minute), per(65_535, time.Second)} {
			p.each(l, func(st sluice.Strategy) {
				k := p.key()
				p.drain(st, k)
				for range 12 {
					exact(st, k, 1+rnd.Int64N(l.Burst))
					p.Clock.Advance(time.Duration(rnd.Int64N(int64(l.Period/time.Microsecond))) * time.Microsecond / 4)
				}
			})
		}
		for _, i := range []int64{1, 7, 8, 9, 10, 12, 72, 80, 999, 1001, 1999, 2000} {
			st, k := bucket(i, time.Hour, 1), p.key()
			p.using(st)
			p.drain(st, k)
			p.Clock.Advance(time.Millisecond)
			exact(st, k, 1)
		}
	},
}, {
	Name:  "ResetAfterLeadsToFresh",
	Rule:  "once ResetAfter is over the state is as good as new, and not one µs before (D3, D5)",
	Timed: true,
	run: func(p *probe) {
		for _, l := range []sluice.Limit{per(1, time.Hour), per(3, 5*time.Second), per(10, time.Second), per(60, time.Minute)} {
			p.each(l, func(st sluice.Strategy) {
				k := p.key()
				p.Clock.Advance(1234567 * time.Microsecond)
				p.charge(st, k, (l.Burst+1)/2)
				p.Clock.Advance(l.Period / 7 / time.Microsecond * time.Microsecond)
				d := p.peek(st, k, 0)
				p.Clock.Advance(d.ResetAfter - time.Microsecond)
				p.want(p.peek(st, k, 0).ResetAfter > 0, "ResetAfter %v: as new 1µs before", d.ResetAfter)
				p.Clock.Advance(time.Microsecond)
				d = p.peek(st, k, l.Burst)
				p.want(d.Allowed && d.Remaining == d.Limit && d.ResetAfter == 0,
					"when ResetAfter is over: Allowed %v, Remaining %d of %d, ResetAfter %v; want all of it, 0", d.Allowed, d.Remaining, d.Limit, d.ResetAfter)
			})
		}
		st, k := bucket(2, time.Minute, 2), p.key()
		p.using(st)
		for _, want := range []time.Duration{30 * time.Second, time.Minute} {
			d := p.charge(st, k, 1)
			p.want(d.ResetAfter == want, "ResetAfter %v, want %v", d.ResetAfter, want)
		}
		d := p.charge(st, k, 1)
		p.want(d.RetryAfter == 30*time.Second, "RetryAfter %v, want 30s, for one token and not for all", d.RetryAfter)
	},
}, {
	Name:  "KeptUntilItEnds",
	Rule:  "a state is kept until its ResetAfter is over, by the limit that wrote it: no eviction hands out a fresh burst",
	Timed: true,
	run: func(p *probe) {
		for i, f := range algorithms {
			st, quick := sluice.Must(f(per(4, 100*time.Second))), sluice.Must(f(per(8, time.Second)))
			p.using(st)
			one, all, settled := p.key(), p.key(), p.key()
			p.at(time.Duration(i) * time.Hour)
			p.charge(st, one, 4)
			p.together(ask(st, all, 4), sluice.Ask{Strategy: quick, Key: all, Mode: sluice.Peek}) // which writes nothing
			p.settle(st, settled, 3, p.charge(st, settled, 1).At)
			end := ends(p.peek(st, one, 0))
			for range 200 { // a store that drops what has ended does so bit by bit
				p.Clock.Advance(99 * time.Second / 200)
				p.charge(st, p.key(), 5)
			}
			for what, k := range map[string]sluice.Key{"a charge": one, "a charge in TakeAll with a Peek under a quicker limit": all, "Settle": settled} {
				d := p.peek(st, k, 0)
				p.want(ends(d) == end, "state of %s, 99s later: it ends %d µs earlier than it should", what, end-ends(d))
			}
		}
	},
}, {
	Name:  "Refill",
	Rule:  "what is regained is proportional to the time that passed, exactly, and never more than the burst (A3, A7, A9, E7)",
	Timed: true,
	run: func(p *probe) {
		for _, st := range []sluice.Strategy{bucket(10, time.Minute, 10), queue(10, time.Minute, 10)} {
			p.using(st)
			k := p.key()
			p.drain(st, k)
			p.Clock.Advance(30 * time.Second)
			p.allows("5 at half the period", p.charge(st, k, 5), 5, 0)
			p.denies("1 more", p.charge(st, k, 1), 0)
			for _, idle := range []time.Duration{12 * time.Hour, 30 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
				p.Clock.Advance(idle)
				p.allows("after a long idle time", p.charge(st, k, 10), 10, 0)
				p.denies("1 more at that instant", p.charge(st, k, 1), 0)
			}
			p.at(0)
		}
		st, k := bucket(700_000, time.Second, 2_000_000), p.key()
		p.using(st)
		p.drain(st, k)
		p.Clock.Advance(time.Second)
		p.allows("after a second", p.charge(st, k, 700_000), 700_000, 0)
		p.denies("1 more", p.charge(st, k, 1), 0)

		st, k = bucket(1_000_000_000, time.Second, 1_000_000_000), p.key()
		p.using(st)
		p.drain(st, k)
		p.Clock.Advance(290 * 365 * 24 * time.Hour) // beyond the largest time
		p.allows("290 years later", p.charge(st, k, 1), 1, 999_999_999)
	},
}, {
	Name:  "PollingDoesNotDelay",
	Rule:  "denied requests don't delay what is regained, however often they come (C1, C3)",
	Timed: true,
	run: func(p *probe) {
		st, k := bucket(1, time.Second, 5), p.key()
		p.using(st)
		p.drain(st, k)
		for i := 1; i < 50; i++ {
			p.at(time.Duration(i) * 100 * time.Millisecond)
			d := p.charge(st, k, 5)
			p.want(!d.Allowed, "5 of 5 passed after %d00ms, want 5s", i)
			want := 5*time.Second - time.Duration(i)*100*time.Millisecond
			p.want(d.RetryAfter == want, "after %d00ms of polling: RetryAfter %v, want %v", i, d.RetryAfter, want)
		}
		p.at(5 * time.Second)
		p.allows("5 of 5 after 5s of polling", p.charge(st, k, 5), 5, 0)

		st, k = sliding(5, 10*time.Second), p.key()
		p.using(st)
		p.at(0)
		passed, quiet := 0, 0
		for i := range 40 {
			p.at(time.Duration(i) * time.Second)
			if quiet++; p.charge(st, k, 1).Allowed {
				passed, quiet = passed+1, 0
			}
			p.want(quiet < 10, "nothing passed in the 10s before %ds", i)
		}
		p.want(passed == 17, "once a second for 40s: %d passed, want 17", passed)

		st, k = queue(3, time.Second, 3), p.key()
		p.using(st)
		p.at(0)
		passed = 0
		for i := range 100 {
			p.at(time.Duration(i) * 100 * time.Millisecond)
			passed += int(p.charge(st, k, 1).Charged)
		}
		p.want(passed == 32, "each 100ms for 10s: %d passed, want 32", passed)
	},
}, {
	Name:  "WindowEdges",
	Rule:  "windows are aligned to the Unix epoch: a new one starts at 0, and a sliding one remembers the last by its weight (B9, E1, D7)",
	Timed: true,
	run: func(p *probe) {
		st, k := fixed(5, time.Minute), p.key()
		p.using(st)
		p.at(58700 * time.Millisecond)
		for range 4 {
			p.charge(st, k, 1)
		}
		p.at(60300 * time.Millisecond)
		for left := int64(4); left >= 0; left-- {
			p.allows("in the next window", p.charge(st, k, 1), 1, left)
		}
		p.denies("a sixth", p.charge(st, k, 1), 0)

		st, k = sliding(10, 10*time.Second), p.key()
		p.using(st)
		p.at(9900 * time.Millisecond)
		p.allows("10 at the end of a window", p.charge(st, k, 10), 10, 0)
		p.at(10100 * time.Millisecond)
		p.denies("1 at the start of the next", p.charge(st, k, 1), 0)
		p.at(15 * time.Second)
		p.allows("5 in the middle of it", p.charge(st, k, 5), 5, 0)

		st, k = sliding(100, 10*time.Second), p.key()
		p.using(st)
		p.at(5 * time.Second)
		p.charge(st, k, 50)
		p.at(11 * time.Second)
		p.allows("previous 50, current 10, a tenth into the window", p.charge(st, k, 10), 10, 45)
		p.denies("46", p.charge(st, k, 46), 45)
		p.allows("45", p.charge(st, k, 45), 45, 0)
	},
}, {
	Name:  "KeysHaveOneGrid",
	Rule:  "all keys of a limit have the same windows: one that is blocked later is not freed earlier or later (K7)",
	Timed: true,
	run: func(p *probe) {
		st, a, b := fixed(2, time.Minute), p.key(), p.key()
		p.using(st)
		p.drain(st, a)
		p.at(30 * time.Second)
		p.drain(st, b)
		p.at(59 * time.Second)
		for _, k := range []sluice.Key{a, b} {
			d := p.charge(st, k, 1)
			p.denies("at 59s", d, 0)
			p.want(d.RetryAfter == time.Second, "at 59s: RetryAfter %v, want 1s", d.RetryAfter)
		}
		p.at(61 * time.Second)
		for _, k := range []sluice.Key{a, b} {
			p.allows("at 61s", p.charge(st, k, 1), 1, 1)
		}
	},
}, {
	Name:  "EndedWindowGivesNothingBack",
	Rule:  "what was charged in a window that has ended is not given back in the running one",
	Timed: true,
	run: func(p *probe) {
		st, k := fixed(5, time.Minute), p.key()
		p.using(st)
		d := p.charge(st, k, 3)
		p.Clock.Advance(time.Minute)
		p.charge(st, k, 2)
		p.allows("Settle -3 of the last window", p.settle(st, k, -3, d.At), 0, 3)

		st, k = sliding(5, time.Minute), p.key()
		p.using(st)
		p.at(0)
		d = p.charge(st, k, 3)
		p.Clock.Advance(time.Minute)
		p.charge(st, k, 1)
		p.allows("Settle -3 of the last window", p.settle(st, k, -3, d.At), 0, 1)

		st, k = bucket(1, time.Minute, 5), p.key()
		p.using(st)
		d = p.charge(st, k, 5)
		p.Clock.Advance(2 * time.Minute)
		p.allows("Settle -2, two periods later: a bucket has no windows", p.settle(st, k, -2, d.At), 0, 4)
	},
}, {
	Name:  "ClockStepsBack",
	Rule:  "a clock that steps back credits nothing twice, and takes nothing away: no time has passed (F1, F3)",
	Timed: true,
	run: func(p *probe) {
		p.each(per(4, 2*time.Second), func(st sluice.Strategy) {
			k := p.key()
			p.Clock.Advance(time.Hour)
			passed := int64(0)
			for range 5 {
				passed += p.charge(st, k, 1).Charged
			}
			p.Clock.Advance(-10 * time.Second)
			passed += p.charge(st, k, 1).Charged
			p.Clock.Advance(10 * time.Second)
			for range 4 {
				passed += p.charge(st, k, 1).Charged
			}
			p.want(passed == 4, "with one call stamped 10s early: %d passed, want 4", passed)

			k = p.key()
			p.allows("1 of 4", p.charge(st, k, 1), 1, 3)
			p.Clock.Advance(-time.Hour)
			p.allows("1 of 3, an hour earlier", p.charge(st, k, 1), 1, 2)
			p.charge(st, k, 2)
			d := p.charge(st, k, 1)
			p.denies("1 of 0, an hour earlier", d, 0)
			p.Clock.Advance(d.RetryAfter)
			p.want(p.charge(st, k, 1).Allowed, "RetryAfter %v from the earlier clock: denied when it is over", d.RetryAfter)
		})
	},
}, {
	Name:  "ClockAtTheEpoch",
	Rule:  "the first call passes whatever the clock shows: year 1, the Unix epoch, year 9999 (F5)",
	Timed: true,
	run: func(p *probe) {
		for _, t := range []time.Time{{}, time.Unix(0, 0), time.Unix(0, 1000), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
			p.Clock.Set(t)
			p.each(per(3, time.Second), func(st sluice.Strategy) {
				k := p.key()
				p.allows("the burst at "+t.Format(time.DateOnly), p.charge(st, k, 3), 3, 0)
				p.denies("1 more", p.charge(st, k, 1), 0)
			})
		}
	},
}, {
	Name:  "LeakyDelays",
	Rule:  "a leaky bucket holds each request until those before it have left; a burst of 1 never delays; no other algorithm does",
	Timed: true,
	run: func(p *probe) {
		st, k := queue(10, time.Second, 5), p.key()
		p.using(st)
		for i := range 5 {
			d := p.charge(st, k, 1)
			want := time.Duration(i) * 100 * time.Millisecond
			p.want(d.Delay == want, "request %d at one instant: Delay %v, want %v", i+1, d.Delay, want)
		}
		p.denies("a sixth", p.charge(st, k, 1), 0)

		st, k = queue(10, time.Second, 1), p.key()
		p.using(st)
		for i := range 5 {
			p.at(time.Duration(i) * 100 * time.Millisecond)
			d := p.charge(st, k, 1)
			p.allows("each 100ms", d, 1, 0)
			p.want(d.Delay == 0, "Delay %v with a burst of 1", d.Delay)
		}
	},
}}
