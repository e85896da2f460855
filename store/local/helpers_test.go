package local_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

func bucket(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func queue(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(leaky.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func fixed(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(fixedwindow.New(sluice.Limit{Count: count, Period: period}))
}

func sliding(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(slidingwindow.New(sluice.Limit{Count: count, Period: period}))
}

// all is one strategy of each algorithm: n at once, and n a period.
func all(n int64, period time.Duration) []sluice.Strategy {
	return []sluice.Strategy{bucket(n, period, n), fixed(n, period), sliding(n, period), queue(n, period, n)}
}

// try asks a store on a clock that stands still until it is stepped, and fails the test where the store does.
type try struct {
	testing.TB
	*local.Store
	*storetest.Clock
}

func newTry(t testing.TB, maxKeys int) try {
	clock := new(storetest.Clock)
	return try{t, local.New(local.Options{Clock: clock.Now, MaxKeys: maxKeys}), clock}
}

func (t try) ask(m sluice.Mode, st sluice.Strategy, subject string, n int64) sluice.Decision {
	t.Helper()
	d, err := t.Take(context.Background(), sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "rule", Subject: subject}, N: n, Mode: m,
		At: algorithm.Clock(t.Now())})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (t try) charge(st sluice.Strategy, subject string, n int64) sluice.Decision {
	t.Helper()
	return t.ask(sluice.Charge, st, subject, n)
}

func (t try) left(st sluice.Strategy, subject string) int64 {
	t.Helper()
	return t.ask(sluice.Peek, st, subject, 0).Remaining
}

// fill takes all room with subjects "filler 0" and so on, which stay as long as st takes to regain a unit.
func (t try) fill(st sluice.Strategy, n int) {
	t.Helper()
	for i := range n {
		if !t.charge(st, fmt.Sprintf("filler %d", i), 1).Allowed {
			t.Fatalf("filler %d is denied", i)
		}
	}
	if t.Len() != n {
		t.Fatalf("%d keys kept, want %d", t.Len(), n)
	}
}

// plain is a store that is right and slow: one lock, nothing ever forgotten.
type plain struct {
	now    func() time.Time
	mu     sync.Mutex
	states map[plainKey]*algorithm.State
}

type plainKey struct {
	sluice.Key
	script *algorithm.Script
}

func newPlain(now func() time.Time) *plain {
	return &plain{now: now, states: map[plainKey]*algorithm.State{}}
}

func (p *plain) state(a *sluice.Ask) *algorithm.State {
	script, _ := a.Strategy.Lua()
	k := plainKey{a.Key, script}
	if p.states[k] == nil {
		p.states[k] = new(algorithm.State)
	}
	return p.states[k]
}

func (p *plain) Take(_ context.Context, a sluice.Ask) (d sluice.Decision, err error) {
	if err := a.Check(); err != nil {
		return d, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state(&a)
	*s, d = a.Decide(*s, algorithm.Clock(p.now()))
	return d, nil
}

func (p *plain) TakeAll(_ context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if err := sluice.CheckAll(asks); err != nil {
		return sluice.Verdict{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := make([]*algorithm.State, len(asks))
	for i := range asks {
		kept[i] = p.state(&asks[i])
	}
	return sluice.DecideAll(asks, kept, algorithm.Clock(p.now()), sluice.Local), nil
}
