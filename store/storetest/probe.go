package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// probe asks the store under test. Its methods end the case by a panic with a failure, as FailNow does.
type probe struct {
	Config
	store sluice.Store
	ctx   context.Context
	about string                  // the strategy under test
	keyNo int                     // keys given out
	late  atomic.Pointer[failure] // the first one on another goroutine
}

// failure says how the store broke the rule.
type failure string

// algorithms are the four that the suite runs.
var algorithms = [...]func(sluice.Limit) (sluice.Strategy, error){
	strategy(tokenbucket.New), strategy(fixedwindow.New), strategy(slidingwindow.New), strategy(leaky.New),
}

func strategy[S sluice.Strategy](f func(sluice.Limit) (S, error)) func(sluice.Limit) (sluice.Strategy, error) {
	return func(l sluice.Limit) (sluice.Strategy, error) { return f(l) }
}

func bucket(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func fixed(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(fixedwindow.New(sluice.Limit{Count: count, Period: period}))
}

func sliding(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(slidingwindow.New(sluice.Limit{Count: count, Period: period}))
}

func queue(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(leaky.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

// still is a limit that regains nothing while a test runs, on any clock: its windows are 5000 days long, and the
// running one ends in 2038.
func still(n int64) sluice.Limit {
	return sluice.Limit{Count: n, Period: 5000 * 24 * time.Hour, Burst: n}
}

// per is a limit of n at once and n a period, for all four algorithms.
func per(n int64, period time.Duration) sluice.Limit {
	return sluice.Limit{Count: n, Period: period, Burst: n}
}

// each runs test with each algorithm under the limit.
func (p *probe) each(l sluice.Limit, test func(st sluice.Strategy)) {
	for _, f := range algorithms {
		st := sluice.Must(f(l))
		p.using(st)
		test(st)
	}
	p.about = ""
}

// using names the strategy in failures to come.
func (p *probe) using(st sluice.Strategy) {
	script, _ := st.Lua()
	p.about = fmt.Sprintf("%s %v: ", script.Name, st.Limit())
}

// key returns a key that no other part of the case uses.
func (p *probe) key() sluice.Key {
	p.keyNo++
	return sluice.Key{Rule: "rule", Subject: fmt.Sprintf("subject %d", p.keyNo)}
}

func (p *probe) fail(format string, args ...any) {
	panic(failure(p.about + fmt.Sprintf(format, args...)))
}

func (p *probe) want(ok bool, format string, args ...any) {
	if !ok {
		p.fail(format, args...)
	}
}

// failLater is fail for other goroutines: the case goes on, and fails in the end.
func (p *probe) failLater(format string, args ...any) {
	f := failure(p.about + fmt.Sprintf(format, args...))
	p.late.CompareAndSwap(nil, &f)
}

// ask returns a charge of n; the caller may change its mode.
func ask(st sluice.Strategy, k sluice.Key, n int64) sluice.Ask {
	return sluice.Ask{Strategy: st, Key: k, N: n}
}

func (p *probe) charge(st sluice.Strategy, k sluice.Key, n int64) sluice.Decision {
	return p.take(ask(st, k, n))
}

func (p *probe) peek(st sluice.Strategy, k sluice.Key, n int64) sluice.Decision {
	return p.take(sluice.Ask{Strategy: st, Key: k, N: n, Mode: sluice.Peek})
}

func (p *probe) upTo(st sluice.Strategy, k sluice.Key, n int64) sluice.Decision {
	return p.take(sluice.Ask{Strategy: st, Key: k, N: n, Mode: sluice.UpTo})
}

func (p *probe) settle(st sluice.Strategy, k sluice.Key, n, at int64) sluice.Decision {
	return p.take(sluice.Ask{Strategy: st, Key: k, N: n, Mode: sluice.Settle, At: at})
}

func (p *probe) reset(st sluice.Strategy, k sluice.Key) sluice.Decision {
	return p.take(sluice.Ask{Strategy: st, Key: k, Mode: sluice.Reset})
}

// drain charges all that is left.
func (p *probe) drain(st sluice.Strategy, k sluice.Key) {
	p.upTo(st, k, st.Limit().Count+st.Limit().Burst)
	d := p.peek(st, k, 0)
	p.want(d.Remaining == 0, "after UpTo for all: Remaining %d, want 0", d.Remaining)
}

// take asks, and checks what holds of every decision.
func (p *probe) take(a sluice.Ask) sluice.Decision {
	d, err := p.store.Take(p.ctx, a)
	p.want(err == nil, "%s: error: %v", describe(a), err)
	if wrong := p.incoherent(a, d); wrong != "" {
		p.fail("%s -> %+v: %s", describe(a), d, wrong)
	}
	return d
}

// incoherent says what is wrong in a decision by itself; "" if nothing.
func (p *probe) incoherent(a sluice.Ask, d sluice.Decision) string {
	_, fresh := a.Strategy.Take(algorithm.State{}, 0, 0)
	script, _ := a.Strategy.Lua()
	charges := a.Mode == sluice.Charge || a.Mode == sluice.UpTo
	switch {
	case d.Source != p.Source && (p.Source != sluice.Shared || d.Source != sluice.Cached || d.Allowed):
		return fmt.Sprintf("Source %v, want %v", d.Source, p.Source)
	case d.Limit != fresh.Limit:
		return fmt.Sprintf("Limit %d, want %d", d.Limit, fresh.Limit)
	case d.Remaining < 0 || d.Remaining > d.Limit:
		return fmt.Sprintf("Remaining %d, want 0 to %d", d.Remaining, d.Limit)
	case d.Allowed && d.RetryAfter != 0:
		return fmt.Sprintf("allowed, with RetryAfter %v, want 0", d.RetryAfter)
	case !d.Allowed && d.RetryAfter <= 0:
		return fmt.Sprintf("denied, with RetryAfter %v, want more than 0", d.RetryAfter)
	case !d.Allowed && (a.Mode == sluice.Settle || a.Mode == sluice.Reset || a.N == 0):
		return "denied: Settle, Reset and n = 0 are always allowed"
	case d.Charged < 0 || d.Charged > 0 && (!charges || !d.Allowed || d.Charged > a.N):
		return fmt.Sprintf("Charged %d", d.Charged)
	case d.Allowed && a.Mode == sluice.Charge && d.Charged != a.N:
		return fmt.Sprintf("Charged %d, want %d", d.Charged, a.N)
	case d.Charged > 0 && d.ResetAfter <= 0:
		return fmt.Sprintf("charged, with ResetAfter %v, want more than 0", d.ResetAfter)
	case d.ResetAfter < 0:
		return fmt.Sprintf("ResetAfter %v", d.ResetAfter)
	case d.Delay < 0 || d.Delay > 0 && (!d.Allowed || script.Name != "leaky_bucket"):
		return fmt.Sprintf("Delay %v, want 0: only the leaky bucket delays, and only what it allows", d.Delay)
	case p.Clock != nil && d.At != algorithm.Clock(p.Clock.Now()):
		return fmt.Sprintf("At %d µs, want the clock's %d", d.At, algorithm.Clock(p.Clock.Now()))
	case p.Clock == nil && (d.At <= 0 || d.At >= algorithm.Bound):
		return fmt.Sprintf("At %d, want µs since the Unix epoch", d.At)
	}
	return ""
}

// allows fails unless d allowed what was asked, charged that much and left so much.
func (p *probe) allows(what string, d sluice.Decision, charged, remaining int64) {
	p.want(d.Allowed && d.Charged == charged && d.Remaining == remaining,
		"%s: Allowed %v, Charged %d, Remaining %d; want true, %d, %d", what, d.Allowed, d.Charged, d.Remaining, charged, remaining)
}

// denies fails unless d denied what was asked, and so much is left.
func (p *probe) denies(what string, d sluice.Decision, remaining int64) {
	p.want(!d.Allowed && d.Charged == 0 && d.Remaining == remaining,
		"%s: Allowed %v, Charged %d, Remaining %d; want false, 0, %d", what, d.Allowed, d.Charged, d.Remaining, remaining)
}

// refuses fails unless the ask is ErrCost.
func (p *probe) refuses(a sluice.Ask) {
	d, err := p.store.Take(p.ctx, a)
	p.want(errors.Is(err, sluice.ErrCost), "%s: %+v, error %v; want ErrCost", describe(a), d, err)
	p.want(!d.Allowed, "%s: ErrCost, and yet allowed", describe(a))
}

// keeps returns how many states the store keeps, where it has a method for that.
func (p *probe) keeps() (n int, known bool) {
	if l, ok := p.store.(interface{ Len() int }); ok {
		return l.Len(), true
	}
	return 0, false
}

func describe(a sluice.Ask) string {
	s := fmt.Sprintf("%v %d", a.Mode, a.N)
	if a.Mode == sluice.Settle {
		s += fmt.Sprintf(" at %d", a.At)
	}
	return s
}
