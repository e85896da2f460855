package algorithmtest

import (
	"fmt"
	"math/big"

	"github.com/sluice-go/sluice/algorithm"
)

// Law is what one kind of algorithm promises over time, apart from the contract that all kinds share. The four kinds
// of this module are [Bucket], [Queue], [Fixed] and [Sliding].
type Law struct {
	// Tick is the resolution of a limit's strategy in µs; nil: 1.
	Tick func(algorithm.Limit) int64
	// Bound checks the last of these calls, an admitted take, against the most that the limit lets pass from a fresh
	// state, net of what was given back and plus what is owed. Times never step back.
	Bound func(l algorithm.Limit, calls []Call) error
	// Model is a slow reading of the limit, independent of the strategy's arithmetic; nil: there is none.
	Model func(algorithm.Limit) Model
	// Window says that what was charged in a window that has ended is not given back.
	Window bool
}

// Call is units that were charged or, below 0, given back.
type Call struct {
	Now int64 // µs
	N   int64
	At  int64 // of a refund: when it was charged
}

// Model decides a history of one key under one limit. A property compares it with the strategy: every field of a
// Decision except Source.
type Model interface {
	Take(now, n int64) algorithm.Decision
	Adjust(now, n, at int64)
}

// Bucket is the law of a token bucket: at most Burst + Count·t/Period in any time t, t rounded up to the tick.
func Bucket() Law {
	return Law{Tick: levelTick, Bound: levelBound, Model: func(l algorithm.Limit) Model { return newLevelModel(l, false) }}
}

// Queue is the law of a leaky bucket: that of a token bucket, and a Delay.
func Queue() Law {
	return Law{Tick: levelTick, Bound: levelBound, Model: func(l algorithm.Limit) Model { return newLevelModel(l, true) }}
}

// Fixed is the law of a fixed window: at most Count in each Period since the Unix epoch.
func Fixed() Law {
	return Law{Bound: fixedBound, Window: true, Model: func(l algorithm.Limit) Model { return newFixedModel(l) }}
}

// Sliding is the law of a window of two counters: at most Count, the previous window weighed by what is left of the
// running one.
func Sliding() Law {
	return Law{Tick: slidingTick, Bound: slidingBound, Window: true, Model: func(l algorithm.Limit) Model { return newSlidingModel(l) }}
}

func (law Law) tick(l algorithm.Limit) int64 {
	if law.Tick == nil {
		return 1
	}
	return law.Tick(l)
}

// levelTick is the finest of 1 µs, 1 ms and 1 s that divides the period and keeps twice the burst, in units of which
// the level falls by a whole number each tick, below 2^52.
func levelTick(l algorithm.Limit) int64 {
	for _, tick := range []int64{1, 1_000, 1_000_000} {
		ticks := big.NewInt(period(l) / tick)
		unit := new(big.Int).Div(ticks, new(big.Int).GCD(nil, nil, ticks, big.NewInt(l.Count)))
		if unit.Mul(unit, big.NewInt(2*l.Burst)).Cmp(big.NewInt(algorithm.Bound)) < 0 {
			return tick
		}
	}
	panic("algorithmtest: no tick fits " + l.String())
}

// slidingTick is the finest that keeps twice the count times the period below 2^52.
func slidingTick(l algorithm.Limit) int64 {
	for _, tick := range []int64{1, 1_000, 1_000_000} {
		weighed := new(big.Int).Mul(big.NewInt(2*l.Count), big.NewInt(period(l)/tick))
		if weighed.Cmp(big.NewInt(algorithm.Bound)) < 0 {
			return tick
		}
	}
	panic("algorithmtest: no tick fits " + l.String())
}

// levelBound checks every span of time that ends with the last call.
func levelBound(l algorithm.Limit, calls []Call) error {
	tick, last := levelTick(l), calls[len(calls)-1]
	net := new(big.Int)
	for i := len(calls) - 1; i >= 0; i-- {
		net.Add(net, big.NewInt(calls[i].N))
		ticks := ceilDiv(big.NewInt(last.Now-calls[i].Now), big.NewInt(tick))
		most := ticks.Mul(ticks, big.NewInt(l.Count))
		most.Div(most, big.NewInt(period(l)/tick)).Add(most, big.NewInt(l.Burst))
		if net.Cmp(most) > 0 {
			return fmt.Errorf("%v admitted, net, from %d to %d µs: want at most %v", net, calls[i].Now, last.Now, most)
		}
	}
	return nil
}

// fixedBound checks the window of the last call.
func fixedBound(l algorithm.Limit, calls []Call) error {
	window := calls[len(calls)-1].Now / period(l)
	if net := counted(l, calls)[window]; net > l.Count {
		return fmt.Errorf("%d admitted, net, in window %d: want at most %d", net, window, l.Count)
	}
	return nil
}

// slidingBound weighs the window before that of the last call.
func slidingBound(l algorithm.Limit, calls []Call) error {
	p, now, tick := period(l), calls[len(calls)-1].Now, slidingTick(l)
	windows := counted(l, calls)
	left := p/tick - now%p/tick
	spent := ceilDiv(mul(windows[now/p-1], left), big.NewInt(p/tick))
	spent.Add(spent, big.NewInt(windows[now/p]))
	if spent.Cmp(big.NewInt(l.Count)) > 0 {
		return fmt.Errorf("%v counted at %d µs, of which %d in the running window: want at most %d", spent, now, windows[now/p], l.Count)
	}
	return nil
}

// counted sums calls by window. A refund counts where both it and its charge lie in one window.
func counted(l algorithm.Limit, calls []Call) map[int64]int64 {
	windows := map[int64]int64{}
	for _, c := range calls {
		w := c.Now / period(l)
		if c.N > 0 || c.At/period(l) == w {
			windows[w] += c.N
		}
	}
	return windows
}

func ceilDiv(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func mul(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }
