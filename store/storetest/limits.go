package storetest

import (
	"time"

	"github.com/sluice-go/sluice"
)

// atOnce is a limit of the same rate whatever its burst, so that edits of the burst are exact; windows have no burst
// of their own, so that their count is edited.
func atOnce(i int, n int64) sluice.Strategy {
	l := still(n)
	if i == 0 || i == 3 {
		l.Count = 100
	}
	return sluice.Must(algorithms[i](l))
}

var limits = []Case{{
	Name: "EditedLimitKeepsUsage",
	Rule: "an edited limit holds at the next call, and what was spent stays spent (G1, C11)",
	run: func(p *probe) {
		for i := range algorithms {
			k := p.key()
			p.using(atOnce(i, 100))
			p.allows("a charge of 1 of 100", p.charge(atOnce(i, 100), k, 1), 1, 99)
			p.using(atOnce(i, 10))
			p.allows("a charge of 1, the limit now 10", p.charge(atOnce(i, 10), k, 1), 1, 8)
			p.allows("a charge of 8", p.charge(atOnce(i, 10), k, 8), 8, 0)
			for range 50 {
				p.denies("a charge of 1 of 0", p.charge(atOnce(i, 10), k, 1), 0)
			}
			p.using(atOnce(i, 20))
			p.allows("a charge of 10, the limit raised from 10 to 20", p.charge(atOnce(i, 20), k, 10), 10, 0)
			p.denies("a charge of 1 more", p.charge(atOnce(i, 20), k, 1), 0)
		}
	},
}, {
	Name: "SmallerLimitClampsTheVerdictOnly",
	Rule: "a smaller limit clamps the verdict, never the stored words: raised again, all that was spent is there",
	run: func(p *probe) {
		for i := range algorithms {
			k := p.key()
			p.using(atOnce(i, 10))
			p.charge(atOnce(i, 10), k, 8)
			d := p.charge(atOnce(i, 4), k, 1)
			p.denies("a charge of 1 of 4 with 8 spent", d, 0)
			p.want(d.Limit == 4, "Limit %d, want 4", d.Limit)
			p.peek(atOnce(i, 4), k, 1)
			p.allows("a charge of 1 of 10 with 8 spent", p.charge(atOnce(i, 10), k, 1), 1, 1)
		}
	},
}, {
	Name:  "EditedRate",
	Rule:  "an edited rate holds at the next call: RetryAfter and ResetAfter are those of the new limit (G3, G5)",
	Timed: true,
	run: func(p *probe) {
		k, slow, quick := p.key(), bucket(10, time.Hour, 10), bucket(10, time.Minute, 10)
		p.using(quick)
		p.drain(slow, k)
		d := p.charge(quick, k, 1)
		p.denies("drained at 10/h, asked at 10/min", d, 0)
		p.want(d.RetryAfter == 6*time.Second, "drained at 10/h, asked at 10/min: RetryAfter %v, want 6s", d.RetryAfter)
		p.Clock.Advance(6 * time.Second)
		p.allows("after 6s", p.charge(quick, k, 1), 1, 0)

		k = p.key()
		p.using(fixed(5, time.Minute))
		p.charge(fixed(5, time.Hour), k, 1)
		d = p.charge(fixed(5, time.Minute), k, 1)
		p.allows("an edited window starts afresh", d, 1, 4)
		p.want(d.ResetAfter <= time.Minute, "a window edited to 1 min: ResetAfter %v", d.ResetAfter)
	},
}}
