package failover_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
)

type told struct{ error }

func (told) Repeated() bool  { return true }
func (e told) Unwrap() error { return e.error }

// A failure that many calls share counts as often as it is not marked: a lost packet under a hundred callers opens no
// breaker.
func TestRepeatedFailuresDoNotCount(t *testing.T) {
	var fail error
	primary := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return sluice.Decision{}, fail })
	b := failover.New(failover.Options{TripAfter: 3, TripShare: 2})
	defer b.Close()
	s := b.Guard(primary, local.New(local.Options{}))
	for batch := range 3 {
		state(t, b, failover.Closed)
		fail = fmt.Errorf("%w: lost", sluice.ErrUnavailable)
		take(t, s, one)
		fail = fmt.Errorf("batch %d: %w", batch, told{fail})
		if batch == 2 {
			break
		}
		for range 100 {
			take(t, s, one)
		}
	}
	state(t, b, failover.Open)
}
