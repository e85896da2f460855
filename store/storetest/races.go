package storetest

import (
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice"
)

// crowd is how many goroutines ask at once.
const crowd = 64

// atOnceAll runs f on a crowd of goroutines that start together, and waits for them.
func (p *probe) atOnceAll(f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(crowd)
	for i := range crowd {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
	if f := p.late.Load(); f != nil {
		panic(*f)
	}
}

// tryTake is take for other goroutines.
func (p *probe) tryTake(a sluice.Ask) sluice.Decision {
	d, err := p.store.Take(p.ctx, a)
	if err != nil {
		p.failLater("%s: error: %v", describe(a), err)
	} else if wrong := p.incoherent(a, d); wrong != "" {
		p.failLater("%s -> %+v: %s", describe(a), d, wrong)
	}
	return d
}

var races = []Case{{
	Name: "ManyClientsAreExact",
	Rule: "any number of clients on one key admit exactly what one client would",
	run: func(p *probe) {
		p.each(still(100), func(st sluice.Strategy) {
			k, passed := p.key(), new(atomic.Int64)
			p.atOnceAll(func(int) {
				for range 4 {
					passed.Add(p.tryTake(ask(st, k, 1)).Charged)
				}
			})
			p.want(passed.Load() == 100, "%d of %d asks passed, want 100", passed.Load(), 4*crowd)

			k, passed = p.key(), new(atomic.Int64)
			p.atOnceAll(func(i int) {
				for j := range 2 {
					passed.Add(p.tryTake(ask(st, k, int64((i+j)%4))).Charged)
				}
			})
			left := p.peek(st, k, 0).Remaining
			p.want(passed.Load()+left == 100, "costs of 0 to 3: %d passed and %d are left, want 100 together", passed.Load(), left)

			k, passed = p.key(), new(atomic.Int64)
			p.atOnceAll(func(int) {
				passed.Add(p.tryTake(sluice.Ask{Strategy: st, Key: k, N: 7, Mode: sluice.UpTo}).Charged)
			})
			p.want(passed.Load() == 100, "UpTo 7 of %d clients: %d passed, want 100", crowd, passed.Load())
		})
	},
}, {
	Name: "ManyRefundsAreExact",
	Rule: "charges and refunds of many clients on one key are each made exactly once",
	run: func(p *probe) {
		p.each(still(2*crowd), func(st sluice.Strategy) {
			k := p.key()
			p.atOnceAll(func(i int) {
				d := p.tryTake(ask(st, k, 2))
				p.tryTake(sluice.Ask{Strategy: st, Key: k, N: -1, Mode: sluice.Settle, At: d.At})
			})
			p.left("each charged 2 and gave 1 back", st, k, crowd)
		})
	},
}, {
	Name: "ManyTakeAllsAreExact",
	Rule: "TakeAll charges every ask or none, also among many clients: none is charged for a call that was refused",
	run: func(p *probe) {
		p.each(still(50), func(st sluice.Strategy) {
			small := atOnce(0, 30)
			a, b, passed := p.key(), p.key(), new(atomic.Int64)
			p.atOnceAll(func(i int) {
				asks := []sluice.Ask{ask(st, a, 1), ask(small, b, 1)}
				if i%2 == 1 {
					asks[0], asks[1] = asks[1], asks[0]
				}
				v, err := p.takeAll(p.ctx, asks)
				if err != nil {
					p.failLater("TakeAll: %v", err)
				}
				if v.Allowed {
					passed.Add(1)
				}
			})
			n := passed.Load()
			p.want(n <= 30 && (n == 30 || !p.Atomic), "%d calls passed where 30 can", n)
			p.left("the larger limit, after calls that the smaller refused", st, a, 50-n)
			p.left("the smaller limit", small, b, 30-n)
		})
	},
}}
