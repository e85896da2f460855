package httplimit

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/charging"
)

// Reservation is what a request was charged under rules with settle, until the response says what it cost. It belongs to
// one request and is settled once. One that is never settled stays charged.
type Reservation struct {
	charges charging.Charges
	settled atomic.Bool
}

// reservation returns what is to be settled; nil if that is nothing.
func reservation(c charging.Charges) *Reservation {
	if !c.Any() {
		return nil
	}
	return &Reservation{charges: c}
}

// Settle corrects each charge to what h says that the request cost, once: less is given back, more is owed, up to one
// burst. h is the response's header after the handler has returned, with what it has set for a trailer; see
// [policy.Rule.Actual]. A charge of which h says nothing stands. It also runs where ctx is already done, under the
// store's own timeout. Nil has nothing to settle.
func (res *Reservation) Settle(ctx context.Context, h http.Header) error {
	if res == nil || res.settled.Swap(true) {
		return nil
	}
	return res.charges.Settle(ctx, h)
}
