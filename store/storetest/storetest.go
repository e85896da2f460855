// Package storetest tests implementations of [sluice.Store], as testing/slogtest does for slog handlers.
//
// An author of a store writes
//
//	func TestConformance(t *testing.T) {
//		clock := new(storetest.Clock)
//		storetest.Run(t, storetest.Config{
//			New:     func(t *testing.T) sluice.Store { return mystore.New(clock.Now) },
//			Clock:   clock,
//			Source:  sluice.Local,
//			Batcher: true,
//			Atomic:  true,
//		})
//	}
//
// and, where two stores can run on one clock, compares them by [Equal].
//
// The suite runs all four algorithms. A case that fails says which rule of the contract the store broke.
package storetest

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/sluice-go/sluice"
)

// Config says what is tested.
type Config struct {
	// New returns a fresh, empty store. Each case calls it once; what the store holds is released by t.Cleanup.
	// A store with a timeout of its own gets a long one: the suite loads it from 64 goroutines.
	New func(t *testing.T) sluice.Store

	// Clock is the clock that the stores of New run on. Nil: they run on a clock that can't be set, such as Redis
	// TIME; then the cases that need to set it are left out, and one that waits some 100 ms takes their place.
	Clock *Clock

	// Source is what the store's decisions carry. A store of Source Shared may repeat denials as Cached.
	Source sluice.Source

	// Batcher demands that the store is a [sluice.Batcher]. TakeAll is tested in any case.
	Batcher bool

	// Atomic says that TakeAll is indivisible, whatever the keys: nobody sees what a refused call charged for a moment.
	Atomic bool
}

// Case is one rule of the contract and its test.
type Case struct {
	Name  string
	Rule  string // what a store must do
	Timed bool   // needs Config.Clock

	run func(*probe)
}

// Check tests the stores of c, and returns how they break the rule; nil if they don't. A Timed case needs c.Clock.
func (c Case) Check(t *testing.T, config Config) (err error) {
	p := &probe{Config: config, ctx: context.Background()}
	defer func() {
		switch r := recover().(type) {
		case nil:
			if f := p.late.Load(); f != nil {
				err = fmt.Errorf("%s\nthe rule: %s", *f, c.Rule)
			}
		case failure:
			err = fmt.Errorf("%s\nthe rule: %s", r, c.Rule)
		default:
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	if config.Clock != nil {
		config.Clock.Set(Start)
	}
	p.store = config.New(t)
	c.run(p)
	return nil
}

// Cases returns all cases, for a test that picks among them. Most authors call [Run].
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{charges, modes, keys, limits, batches, races, contexts, decisions, times} {
		all = append(all, group...)
	}
	return all
}

// Run tests the stores of c with all cases that its Clock permits, each as a subtest.
func Run(t *testing.T, c Config) {
	for _, one := range Cases() {
		if one.Timed && c.Clock == nil || one.Name == waiting && c.Clock != nil {
			continue
		}
		t.Run(one.Name, func(t *testing.T) {
			if err := one.Check(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}
