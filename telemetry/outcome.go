package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
)

// Outcome is what came of one ask, in the words of a label.
type Outcome uint8

const (
	Allowed     Outcome = iota
	Denied              // this limit refused
	Withheld            // another limit of the same call refused: nothing was charged here
	Unavailable         // no answer: the store could not be reached or asked in time, and had no fallback
	BadState            // no answer: the key's state is unusable
	Cancelled           // no answer: the caller had gone, or gave the store no time
	Failed              // no answer: the ask was wrong in itself, or a foreign store's own error
)

// Outcomes is how many there are: the length of an array by Outcome.
const Outcomes = int(Failed) + 1

// String returns allowed, denied, withheld, unavailable, state, cancelled or failed.
func (o Outcome) String() string {
	if names := [Outcomes]string{"allowed", "denied", "withheld", "unavailable", "state", "cancelled", "failed"}; int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// patience is how long a store is given before a caller's deadline that ends the ask says something about the store. A
// breaker has the same measure; see package failover.
const patience = 10 * time.Millisecond

// OutcomeOf says what came of an ask under ctx that a store answered with d and err after took. A denial has a RetryAfter;
// an ask that is not allowed and has none was held back with the rest of its call. A caller whose own deadline ended the
// ask within 10 ms is one that has gone: clients choose their deadlines, and are not to make a store look unavailable.
func OutcomeOf(ctx context.Context, d sluice.Decision, err error, took time.Duration) Outcome {
	switch {
	case err != nil && took < patience && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return Cancelled
	case err != nil:
		return failure(err)
	case d.Allowed:
		return Allowed
	case d.RetryAfter > 0:
		return Denied
	}
	return Withheld
}

func failure(err error) Outcome {
	switch {
	case errors.Is(err, sluice.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	case errors.Is(err, sluice.ErrState):
		return BadState
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	return Failed
}

// Decides tells whether asks of a mode are decisions about a request. The others look, give back or forget.
func Decides(m sluice.Mode) bool { return m == sluice.Charge || m == sluice.UpTo }

// Sources is the length of an array by [SourceOf].
const Sources = int(sluice.Assumed) + 2

// NoSource is the SourceOf what nobody decided.
const NoSource = sluice.Source(Sources - 1)

// SourceOf returns who decided; NoSource for what is no decision.
func SourceOf(d sluice.Decision, o Outcome) sluice.Source {
	if o > Withheld || d.Source > sluice.Assumed {
		return NoSource
	}
	return d.Source
}

// SourceName returns shared, cached, local, assumed or none.
func SourceName(s sluice.Source) string {
	if s >= NoSource {
		return "none"
	}
	return s.String()
}

// Durations returns the bounds, in seconds, of a histogram of what decisions take: from one in process to a hung store,
// with Envoy's timeout of 20 ms and a store's own of 50 ms among them.
func Durations() []float64 {
	return []float64{1e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.25, 1}
}
