package failover_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/local"
)

// asked is a store that remembers what it is asked.
type asked struct {
	sluice.Store
	asks []sluice.Ask
}

func (s *asked) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	s.asks = append(s.asks, a)
	return s.Store.Take(ctx, a)
}

// An outage with traffic, then none: Probe closes the breaker by as many probes as there must be, once OpenFor has passed
// and the store answers; a probe charges no key of a caller's and leaves nothing.
func TestProbe(t *testing.T) {
	for _, probes := range []int{1, 3} {
		for _, together := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				off := &away{store: local.New(local.Options{Clock: time.Now})}
				primary := &asked{Store: off}
				b := failover.New(failover.Options{TripAfter: 2, Probes: probes, OpenFor: 3 * time.Second})
				defer b.Close()
				s := b.Guard(primary, failover.AllowAll{})
				a := ask(bucket(1, time.Hour), "subject", 1)
				subjects := []string{"subject"}
				if together {
					subjects = append(subjects, "one")
				}
				take := func() {
					if !together {
						take(t, s, a)
					} else if _, err := sluice.TakeAll(t.Context(), s, []sluice.Ask{a, one, a}); err != nil {
						t.Error(err)
					}
				}
				want := func(when string, asks int, after failover.State) {
					t.Helper()
					was := len(primary.asks)
					b.Probe(t.Context())
					if n, s := len(primary.asks)-was, b.State(); n != asks || s != after {
						t.Errorf("%s: %d asks, then %v; want %d and %v", when, n, s, asks, after)
					}
				}
				want("nothing has failed", 0, failover.Closed)
				off.off.Store(true)
				take()
				want("closed", 0, failover.Closed)
				take()
				want("open", 0, failover.Open)
				for range 3 {
					time.Sleep(3*time.Second + 1)
					want("still away", 1, failover.Open)
				}
				off.off.Store(false)
				want("back, but open", 0, failover.Open)
				time.Sleep(3*time.Second + 1)
				want("back", 2*probes*len(subjects), failover.Closed)
				want("closed again", 0, failover.Closed)

				last := primary.asks[len(primary.asks)-2*len(subjects):]
				for i, subject := range subjects {
					charge, reset, of := last[2*i], last[2*i+1], []sluice.Ask{a, one}[i]
					if charge.Mode != sluice.Charge || charge.N != 1 || charge.Strategy != of.Strategy || charge.Key.Subject != subject || !strings.HasPrefix(charge.Key.Rule, "probe-") {
						t.Errorf("the probe was %+v, want a charge by the strategy and for the subject that failed, under a Rule of its own", charge)
					}
					if reset.Mode != sluice.Reset || reset.Key != charge.Key {
						t.Errorf("then came %+v, want a Reset of the same", reset)
					}
					for _, key := range []sluice.Key{of.Key, charge.Key} {
						if got, want := remaining(t, off, sluice.Ask{Strategy: of.Strategy, Key: key}), of.Strategy.Limit().Count; got != want {
							t.Errorf("%v: %d left of %d, want all", key, got, want)
						}
					}
				}
			})
		}
	}
}

// A Probe does not wait for a store that hangs, and one that is cancelled gives its place back.
func TestProbeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, primary := guarded(t, failover.Options{TripAfter: 1}, fails)
		take(t, s, one)
		primary.f = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		time.Sleep(time.Second + 1)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		b.Probe(gone)
		state(t, b, failover.HalfOpen)
		start := time.Now()
		b.Probe(t.Context())
		if took := time.Since(start); took != time.Second {
			t.Errorf("a Probe of a store that hangs took %v, want 1s", took)
		}
		state(t, b, failover.Open)
	})
}

// spread is a store whose keys lie on several servers, of which some are away.
type spread struct {
	sluice.Store
	away map[string]bool // by subject
}

func (s *spread) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if s.away[a.Key.Subject] {
		return sluice.Decision{}, errAway
	}
	return s.Store.Take(ctx, a)
}

// Where a call is for keys on several servers, a breaker stays away until each of them is back, whichever failed.
func TestProbeOfSeveralServers(t *testing.T) {
	subjects := []string{"a", "b", "c"}
	for _, lost := range subjects {
		synctest.Test(t, func(t *testing.T) {
			primary := &spread{local.New(local.Options{Clock: time.Now}), map[string]bool{lost: true}}
			b := failover.New(failover.Options{})
			defer b.Close()
			s := b.Guard(primary, failover.AllowAll{})
			var asks []sluice.Ask
			for _, subject := range subjects {
				asks = append(asks, ask(bucket(100, time.Hour), subject, 1))
			}
			for range 5 {
				if _, err := sluice.TakeAll(t.Context(), s, asks); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				time.Sleep(time.Second + 1)
				b.Probe(t.Context())
				state(t, b, failover.Open)
			}
			primary.away[lost] = false
			time.Sleep(time.Second + 1)
			b.Probe(t.Context())
			state(t, b, failover.Closed)
		})
	}
}

// A probe asks for no more than 16 subjects, however many a call has.
func TestProbeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, primary := guarded(t, failover.Options{TripAfter: 1}, fails)
		var asks []sluice.Ask
		for i := range 100 {
			asks = append(asks, ask(bucket(100, time.Hour), fmt.Sprint(i), 1))
		}
		if _, err := sluice.TakeAll(t.Context(), s, asks); err != nil {
			t.Fatal(err)
		}
		primary.f = works
		was := primary.calls.Load()
		time.Sleep(time.Second + 1)
		b.Probe(t.Context())
		if got := primary.calls.Load() - was; got != 2*16 {
			t.Errorf("a probe made %d asks, want 16 charges and their resets", got)
		}
		state(t, b, failover.Closed)
	})
}

// What waits for its store is sent after a Probe that closes the breaker, too.
func TestProbeSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, failover.Options{})
		st := bucket(100, time.Hour)
		d := take(t, p.Store, ask(st, "a", 10))
		p.trip(t, st)
		take(t, p.Store, mode(ask(st, "a", -10), sluice.Settle, d.At))
		p.primary.off.Store(false)
		time.Sleep(time.Second + 1)
		p.Probe(t.Context())
		synctest.Wait()
		if got := remaining(t, p.primary, ask(st, "a", 0)); got != 100 {
			t.Errorf("%d left of 100, want all given back", got)
		}
	})
}

// A Redis that answers reads and refuses writes is not back: a Probe says so as a decision would.
func TestProbeOfRedisThatRefusesWrites(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	b, s, _ := onRedis(t, server.Addr, failover.Options{OpenFor: time.Millisecond}, 5*time.Second)
	set := func(memory string) {
		t.Helper()
		if err := client.ConfigSet(t.Context(), "maxmemory", memory).Err(); err != nil {
			t.Fatal(err)
		}
	}
	take(t, s, ask(slow, "a", 1)) // the script is known
	set("1")
	for i := range 5 {
		take(t, s, ask(slow, fmt.Sprint(i), 1))
	}
	state(t, b, failover.Open)
	for range 20 {
		time.Sleep(2 * time.Millisecond)
		b.Probe(t.Context())
		if got := b.State(); got == failover.Closed {
			t.Fatal("the breaker has closed on a Redis that is out of memory")
		}
	}
	set("0")
	for give := time.Now().Add(20 * time.Second); b.State() != failover.Closed; time.Sleep(2 * time.Millisecond) {
		if b.Probe(t.Context()); time.Now().After(give) {
			t.Fatal("memory is there again, and the breaker stays open")
		}
	}
	if keys := client.Keys(t.Context(), "*probe*").Val(); len(keys) != 0 {
		t.Errorf("probes have left %q", keys)
	}
}
