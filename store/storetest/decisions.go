package storetest

import (
	"time"

	"github.com/sluice-go/sluice"
)

// waiting is the case that waits in real time: for stores whose clock can't be set.
const waiting = "RetryAfterInRealTime"

var decisions = []Case{{
	Name: "Bounds",
	Rule: "ResetAfter is more than 0 after a charge and at most what the limit takes to be as new; RetryAfter is more than 0 on a denial and at most that",
	run: func(p *probe) {
		p.each(still(10), func(st sluice.Strategy) {
			k, period := p.key(), st.Limit().Period
			for range 10 {
				d := p.charge(st, k, 1)
				p.want(d.ResetAfter <= 2*period, "ResetAfter %v, want at most two periods", d.ResetAfter)
			}
			d := p.charge(st, k, 10)
			p.denies("a charge of 10 of 0", d, 0)
			p.want(d.RetryAfter <= 2*period, "RetryAfter %v, want at most two periods", d.RetryAfter)
			p.want(d.RetryAfter <= d.ResetAfter, "RetryAfter %v, ResetAfter %v: the burst passes once the state is as new", d.RetryAfter, d.ResetAfter)
		})
	},
}, {
	Name: "AtIsTheStoresClock",
	Rule: "At is the store's clock in µs since the Unix epoch: it runs forward, and a charge's At finds it again in Settle",
	run: func(p *probe) {
		p.each(still(1000), func(st sluice.Strategy) {
			k, last := p.key(), int64(0)
			const step = 1_000_000 // that much a server's clock may be set back
			for range 20 {
				d := p.charge(st, k, 1)
				p.want(d.At >= last-step, "At went from %d back to %d", last, d.At)
				last = d.At
			}
			p.allows("Settle of a charge", p.settle(st, k, -1, last), 0, 981)
		})
	},
}, {
	Name: waiting,
	Rule: "the same request passes once RetryAfter is over, and not before",
	run: func(p *probe) {
		p.each(per(1, 50*time.Millisecond), func(st sluice.Strategy) {
			k := p.key()
			var denied sluice.Decision
			for give := time.Now().Add(10 * time.Second); ; { // a slow store may regain between two calls
				if denied = p.charge(st, k, 1); !denied.Allowed {
					break
				}
				p.want(time.Now().Before(give), "1 per 50ms was never exceeded")
			}
			p.want(denied.RetryAfter <= 100*time.Millisecond, "RetryAfter %v at 1 per 50ms", denied.RetryAfter)
			for give := time.Now().Add(10 * time.Second); ; {
				time.Sleep(denied.RetryAfter / 4)
				d := p.charge(st, k, 1)
				if d.Allowed {
					early := denied.At + denied.RetryAfter.Microseconds() - d.At
					p.want(early <= 0, "passed %d µs before RetryAfter was over", early)
					return
				}
				p.want(time.Now().Before(give), "denied with RetryAfter %v, and 10s later still", denied.RetryAfter)
			}
		})
	},
}}
