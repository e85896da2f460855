package telemetry

import (
	"context"
	"time"

	"github.com/sluice-go/sluice"
)

// All returns an observer that tells each of the others, in order.
func All(observers ...sluice.Observer) sluice.Observer {
	return all(append([]sluice.Observer(nil), observers...))
}

type all []sluice.Observer

func (all all) Observe(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
	for _, o := range all {
		o.Observe(ctx, a, d, err, took)
	}
}
