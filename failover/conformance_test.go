package failover_test

import (
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

// A guard is a store as good as the one that decides, while the primary answers and while it does not.
func TestConformance(t *testing.T) {
	clock := new(storetest.Clock)
	exact := func() sluice.Store { return local.New(local.Options{Clock: clock.Now}) }
	guard := func(t *testing.T, primary, fallback sluice.Store) sluice.Store {
		b := failover.New(failover.Options{})
		t.Cleanup(func() { _ = b.Close() })
		return b.Guard(primary, fallback)
	}
	for name, build := range map[string]func(t *testing.T) sluice.Store{
		"closed": func(t *testing.T) sluice.Store {
			return guard(t, exact(), local.NewBuckets(local.BucketsOptions{Clock: clock.Now}))
		},
		"closed, fail-open": func(t *testing.T) sluice.Store { return guard(t, exact(), failover.AllowAll{}) },
		"no fallback":       func(t *testing.T) sluice.Store { return guard(t, exact(), nil) },
		"away": func(t *testing.T) sluice.Store {
			primary := &away{}
			primary.off.Store(true)
			return guard(t, primary, exact())
		},
		"guard of a guard": func(t *testing.T) sluice.Store {
			primary := &away{}
			primary.off.Store(true)
			return guard(t, guard(t, primary, nil), guard(t, exact(), failover.DenyAll{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Config{New: build, Clock: clock, Source: sluice.Local, Batcher: true, Atomic: true})
		})
	}
}
