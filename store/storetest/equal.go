package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// Equal asks two stores the same, steps times, and fails at the first answer that differs: the same questions give the
// same decisions in every store. Both run on clock, which Equal sets.
//
// The asks are random and the same in each run: all modes and algorithms, TakeAll, refunds of earlier charges, limits
// that are edited, time in small and large steps, and now and then a step back. Whole decisions are compared, but for
// Source. A store may forget a state once the ResetAfter of its last write has passed, or keep it; so Equal never steps
// back to where a state that has ended had not, and resets one before it asks under another limit.
func Equal(t *testing.T, clock *Clock, a, b func(t *testing.T) sluice.Store, steps int) {
	t.Helper()
	if err := equal(clock, a(t), b(t), steps, 1); err != nil {
		t.Error(err)
	}
}

// pair asks two stores.
type pair struct {
	clock   *Clock
	rnd     *rand.Rand
	a, b    sluice.Store
	states  map[state]*track
	high    int64 // the latest time that the clock showed, µs
	floor   int64 // the latest end of a state that has passed, µs
	open    []int64
	history []string
}

// state names what a store keeps apart.
type state struct {
	key    sluice.Key
	script *algorithm.Script
}

// track is what is known of a state.
type track struct {
	strategy sluice.Strategy // of the last ask
	writer   sluice.Strategy // of the last write; nil where two may have written
	ends     []int64         // when it will be as good as new, by each limit that may have written it, µs
	charged  []sluice.Decision
}

func equal(clock *Clock, a, b sluice.Store, steps int, seed uint64) error {
	p := &pair{clock: clock, rnd: rand.New(rand.NewPCG(seed, seed)), a: a, b: b, states: map[state]*track{}}
	clock.Set(Start)
	p.moved()
	for i := range steps {
		p.step()
		asks := make([]sluice.Ask, 1)
		if p.rnd.IntN(5) == 0 {
			asks = make([]sluice.Ask, 1+p.rnd.IntN(5))
		}
		for j := range asks {
			ask, err := p.ask(len(asks) > 1)
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			asks[j] = ask
		}
		var err error
		if len(asks) == 1 {
			err = p.take(asks[0])
		} else {
			err = p.takeAll(asks)
		}
		if err != nil {
			return fmt.Errorf("step %d of seed %d: %w\nwhat went before on its keys:\n%s", i, seed, err, p.about(asks))
		}
	}
	return nil
}

// step moves the clock.
func (p *pair) step() {
	µ := time.Microsecond
	switch p.rnd.IntN(12) {
	case 0, 1, 2, 3: // at one instant
	case 4:
		p.clock.Advance(µ)
	case 5:
		p.clock.Advance(time.Duration(p.rnd.IntN(1000)) * µ)
	case 6, 7:
		p.clock.Advance(time.Duration(p.rnd.IntN(300_000)) * µ)
	case 8, 9:
		p.clock.Advance(time.Duration(p.rnd.IntN(5_000_000)) * µ)
	case 10:
		if p.rnd.IntN(10) == 0 {
			p.clock.Advance(time.Duration(p.rnd.Int64N(int64(2*time.Hour/µ))) * µ)
		}
	case 11:
		now := algorithm.Clock(p.clock.Now())
		back := p.rnd.Int64N(2_000_000)
		p.clock.Set(time.UnixMicro(max(p.floor, now-back)))
	}
	p.moved()
}

// moved notes which states have ended.
func (p *pair) moved() {
	p.high = max(p.high, algorithm.Clock(p.clock.Now()))
	still := p.open[:0]
	for _, end := range p.open {
		if end <= p.high {
			p.floor = max(p.floor, end)
		} else {
			still = append(still, end)
		}
	}
	p.open = still
}

// choices are the limits that a key changes among, by algorithm.
var choices = func() (all [len(algorithms)][]sluice.Strategy) {
	limits := []sluice.Limit{per(5, time.Second), per(3, time.Second), per(20, time.Second), per(7, 3*time.Second),
		per(10, time.Minute), per(1, 7*time.Second), per(1000, time.Hour), per(1_000_000_007, time.Second)}
	for i, f := range algorithms {
		for _, l := range limits {
			all[i] = append(all[i], sluice.Must(f(l)))
		}
	}
	for _, l := range []sluice.Limit{{Count: 10, Period: time.Second, Burst: 25}, {Count: 100, Period: 7 * time.Second, Burst: 2}} {
		all[0] = append(all[0], sluice.Must(algorithms[0](l)))
		all[3] = append(all[3], sluice.Must(algorithms[3](l)))
	}
	return all
}()

// ask makes a question, often one on the edge of what is left.
func (p *pair) ask(together bool) (sluice.Ask, error) {
	algo := p.rnd.IntN(len(algorithms))
	a := sluice.Ask{Key: sluice.Key{Rule: "rule", Subject: string(rune('a' + p.rnd.IntN(4)))}}
	script, _ := choices[algo][0].Lua()
	st := p.states[state{a.Key, script}]
	if st == nil {
		st = &track{strategy: choices[algo][p.rnd.IntN(len(choices[algo]))]}
		p.states[state{a.Key, script}] = st
	}
	a.Strategy = st.strategy
	if p.rnd.IntN(12) == 0 {
		a.Strategy = choices[algo][p.rnd.IntN(len(choices[algo]))]
		st.strategy = a.Strategy
	}
	if a.Strategy != st.writer && st.ended(p.high) {
		if err := p.take(sluice.Ask{Strategy: a.Strategy, Key: a.Key, Mode: sluice.Reset}); err != nil {
			return a, err
		}
	}

	most := max(a.Strategy.Limit().Burst, a.Strategy.Limit().Count)
	switch p.rnd.IntN(8) {
	case 0:
		a.N = 0
	case 1:
		a.N = most + p.rnd.Int64N(3) - 1
	case 2:
		a.N = p.rnd.Int64N(2*most + 1)
	case 3:
		a.N = 1 + p.rnd.Int64N(most)
	default:
		a.N = 1 + p.rnd.Int64N(most/3+1)
	}
	if p.rnd.IntN(200) == 0 {
		a.N = []int64{-1, math.MinInt64, math.MaxInt64, 1 << 53}[p.rnd.IntN(4)]
	}
	switch p.rnd.IntN(12) {
	case 0, 1:
		a.Mode = sluice.Peek
	case 2, 3:
		a.Mode = sluice.UpTo
	case 4:
		a.Mode, a.At = sluice.Settle, algorithm.Clock(p.clock.Now())-p.rnd.Int64N(2_000_000)
		if p.rnd.IntN(2) == 0 && a.N > 0 {
			a.N = -a.N
		}
	case 5: // a refund
		if n := len(st.charged); n > 0 {
			d := st.charged[p.rnd.IntN(n)]
			a.Mode, a.N, a.At = sluice.Settle, -d.Charged, d.At
		}
	case 6:
		if !together && p.rnd.IntN(3) == 0 {
			a.Mode = sluice.Reset
		}
	}
	return a, nil
}

// ended tells whether a store may have forgotten the state.
func (s *track) ended(now int64) bool {
	for _, end := range s.ends {
		if end <= now {
			return true
		}
	}
	return false
}

// note records what an ask may have written.
func (p *pair) note(a sluice.Ask, d sluice.Decision) {
	script, _ := a.Strategy.Lua()
	st := p.states[state{a.Key, script}]
	p.history = append(p.history, fmt.Sprintf("%s at %s: %s", name(a), p.clock.Now().Format("15:04:05.000000"), show(d)))
	end := ends(d)
	p.open = append(p.open, end)
	switch {
	case a.Mode == sluice.Reset || a.Mode == sluice.Settle && d.ResetAfter == 0: // deleted
		st.ends, st.writer = nil, nil
	case d.Charged > 0:
		st.ends, st.writer = []int64{end}, a.Strategy
		if st.charged = append(st.charged, d); len(st.charged) > 4 {
			st.charged = st.charged[1:]
		}
	case a.Mode == sluice.Settle:
		if st.ends = append(st.ends, end); st.writer != a.Strategy {
			st.writer = nil
		}
	}
	p.moved()
}

func (p *pair) take(a sluice.Ask) error {
	ctx := context.Background()
	da, ea := p.a.Take(ctx, a)
	db, eb := p.b.Take(ctx, a)
	if err := sameError(ea, eb); err != nil {
		return fmt.Errorf("%s: %w", name(a), err)
	}
	if !same(da, db) {
		return fmt.Errorf("%s:\n  %T: %s\n  %T: %s", name(a), p.a, show(da), p.b, show(db))
	}
	if ea == nil {
		p.note(a, da)
	}
	return nil
}

func (p *pair) takeAll(asks []sluice.Ask) error {
	ctx := context.Background()
	va, ea := sluice.TakeAll(ctx, p.a, asks)
	vb, eb := sluice.TakeAll(ctx, p.b, asks)
	names := make([]string, len(asks))
	for i, a := range asks {
		names[i] = name(a)
	}
	what := "TakeAll of\n  " + strings.Join(names, "\n  ") + "\n"
	if err := sameError(ea, eb); err != nil {
		return fmt.Errorf("%s%w", what, err)
	}
	if va.Refused != vb.Refused || len(va.Each) != len(vb.Each) || !same(va.Decision, vb.Decision) {
		return fmt.Errorf("%s  %T: Refused %d, %s\n  %T: Refused %d, %s", what, p.a, va.Refused, show(va.Decision), p.b, vb.Refused, show(vb.Decision))
	}
	for i := range va.Each {
		if !same(va.Each[i], vb.Each[i]) {
			return fmt.Errorf("%sEach[%d]:\n  %T: %s\n  %T: %s", what, i, p.a, show(va.Each[i]), p.b, show(vb.Each[i]))
		}
	}
	if ea == nil && va.Refused < 0 {
		for i, a := range asks {
			p.note(a, va.Each[i])
		}
	}
	return nil
}

// same compares decisions but for Source.
func same(a, b sluice.Decision) bool {
	a.Source = b.Source
	return a == b
}

func sameError(a, b error) error {
	for _, kind := range []error{sluice.ErrCost, sluice.ErrState, sluice.ErrUnavailable} {
		if errors.Is(a, kind) != errors.Is(b, kind) || errors.Is(a, kind) && kind != sluice.ErrCost {
			return fmt.Errorf("errors %v and %v", a, b)
		}
	}
	if (a == nil) != (b == nil) {
		return fmt.Errorf("errors %v and %v", a, b)
	}
	return nil
}

// about is the last of the history that concerns the asks' keys.
func (p *pair) about(asks []sluice.Ask) string {
	var lines []string
	for i := len(p.history) - 1; i >= 0 && len(lines) < 8; i-- {
		for _, a := range asks {
			if strings.HasPrefix(p.history[i], prefix(a)) {
				lines = append([]string{"  " + p.history[i]}, lines...)
				break
			}
		}
	}
	return strings.Join(lines, "\n")
}

func prefix(a sluice.Ask) string {
	script, _ := a.Strategy.Lua()
	return script.Name + " " + a.Key.Subject + ","
}

func name(a sluice.Ask) string {
	return fmt.Sprintf("%s %v: %s", prefix(a), a.Strategy.Limit(), describe(a))
}

func show(d sluice.Decision) string {
	return fmt.Sprintf("Allowed %v, Charged %d, Limit %d, Remaining %d, RetryAfter %v, ResetAfter %v, Delay %v, At %d",
		d.Allowed, d.Charged, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Delay, d.At)
}
