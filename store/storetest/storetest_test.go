package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
)

func TestReferencePasses(t *testing.T) {
	clock := new(Clock)
	Run(t, Config{
		New:   func(*testing.T) sluice.Store { return newReference(clock.Now) },
		Clock: clock, Source: sluice.Local, Batcher: true, Atomic: true,
	})
}

func TestReferencePassesOnItsOwnClock(t *testing.T) {
	Run(t, Config{
		New:    func(*testing.T) sluice.Store { return newReference(time.Now) },
		Source: sluice.Local, Batcher: true, Atomic: true,
	})
}

// One method is enough: sluice.TakeAll does the rest.
func TestStoreWithoutBatcherPasses(t *testing.T) {
	clock := new(Clock)
	Run(t, Config{
		New:   func(*testing.T) sluice.Store { return sluice.StoreFunc(newReference(clock.Now).Take) },
		Clock: clock, Source: sluice.Local,
	})
}

func TestBrokenStoresFail(t *testing.T) {
	cases := map[string]Case{}
	for _, c := range Cases() {
		cases[c.Name] = c
	}
	for _, b := range broken {
		t.Run(strings.ReplaceAll(b.what, " ", "_"), func(t *testing.T) {
			clock := new(Clock)
			config := Config{Clock: clock, Source: sluice.Local, Batcher: true, Atomic: true}
			now := clock.Now
			if b.found == waiting {
				config.Clock, now = nil, time.Now
			}
			config.New = func(*testing.T) sluice.Store {
				r := newReference(now)
				b.spoil(r)
				return r
			}
			c, ok := cases[b.found]
			if !ok {
				t.Fatalf("no case %s", b.found)
			}
			var err error
			for try := 0; err == nil && try < 50; try++ { // a race shows by chance
				err = c.Check(t, config)
			}
			if err == nil {
				t.Fatalf("the case %s does not see it", b.found)
			}
			if !strings.Contains(err.Error(), c.Rule) {
				t.Errorf("the failure does not tell the rule: %v", err)
			}
		})
	}
}

func TestPanicsFail(t *testing.T) {
	config := Config{New: func(*testing.T) sluice.Store {
		return sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { panic("out of order") })
	}}
	if err := Cases()[0].Check(t, config); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("a store that panics: %v", err)
	}
}

func TestBatcherIsDemanded(t *testing.T) {
	config := Config{New: func(*testing.T) sluice.Store { return sluice.StoreFunc(newReference(time.Now).Take) }}
	for _, c := range Cases() {
		if c.Name != "Batcher" {
			continue
		}
		if err := c.Check(t, config); err != nil {
			t.Errorf("not demanded: %v", err)
		}
		if config.Batcher = true; c.Check(t, config) == nil {
			t.Error("demanded: a store without TakeAll passes")
		}
	}
}

// A case that no broken store fails would be no test.
func TestEachCaseFindsAFault(t *testing.T) {
	for _, c := range Cases() {
		found := slices.ContainsFunc(broken, func(f fault) bool { return f.found == c.Name })
		if !found && c.Name != "Batcher" {
			t.Errorf("%s: no broken store shows that it finds anything", c.Name)
		}
	}
}

func TestEqual(t *testing.T) {
	clock := new(Clock)
	store := func(*testing.T) sluice.Store { return newReference(clock.Now) }
	Equal(t, clock, store, store, 20_000)
}

// unequal are the cases whose faults two stores can differ in and still decide alike: Equal asks for few keys, one by
// one, in a living context.
var unequal = []string{"AllowThenDeny", "KeysDoNotCollide", "UnseenKeysMakeNoState", "Cancelled", "DeadlineHolds", "ClockAtTheEpoch",
	"ManyClientsAreExact", "ManyRefundsAreExact", "ManyTakeAllsAreExact", "TakeAllErrCost", "TakeAllOfNothing", "TakeAllOfMany"}

func TestEqualSeesFaults(t *testing.T) {
	for _, b := range broken {
		if slices.Contains(unequal, b.found) {
			continue
		}
		clock := new(Clock)
		spoiled := newReference(clock.Now)
		b.spoil(spoiled)
		if err := equal(clock, newReference(clock.Now), spoiled, 20_000, 1); err == nil {
			t.Errorf("a store that %s looks equal", b.what)
		}
	}
}
