package httplimit

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// settleTime bounds a settlement, beside the store's own timeout: the response ends after it.
const settleTime = time.Second

// Reservation is what a request was charged under rules with settle, until the response says what it cost. It belongs to
// one request and is settled once. One that is never settled stays charged.
type Reservation struct {
	store   sluice.Store // the one that charged
	charges []charge
	settled atomic.Bool
}

// charge is what one limit was charged.
type charge struct {
	rule    *policy.Rule
	ask     sluice.Ask // as it was taken
	charged int64
	at      int64 // the store's clock, µs
}

// reserve returns what the rules with settle were charged; nil if that is nothing.
func reserve(store sluice.Store, rules []*policy.Rule, asks []sluice.Ask, v sluice.Verdict) *Reservation {
	var res *Reservation
	i := 0
	for _, rule := range rules {
		n := rule.Enforced()
		if rule.Settle != "" {
			for j := i; j < i+n && j < len(v.Each); j++ {
				res = res.add(store, rule, asks[j], v.Each[j])
			}
		}
		i += n
	}
	return res
}

// add appends a charge, if there was one, and returns the reservation, which it makes if need be.
func (res *Reservation) add(store sluice.Store, rule *policy.Rule, ask sluice.Ask, d sluice.Decision) *Reservation {
	if !d.Allowed || d.Charged <= 0 || d.Source == sluice.Assumed { // nothing that could be corrected
		return res
	}
	if res == nil {
		res = &Reservation{store: store}
	}
	res.charges = append(res.charges, charge{rule: rule, ask: ask, charged: d.Charged, at: d.At})
	return res
}

// Settle corrects each charge to what h says that the request cost, once: less is given back, more is owed, up to one
// burst. h is the response's header after the handler has returned, with what it has set for a trailer; see
// [policy.Rule.Actual]. A charge of which h says nothing stands. It also runs where ctx is already done, under the
// store's own timeout. Nil has nothing to settle.
func (res *Reservation) Settle(ctx context.Context, h http.Header) error {
	if res == nil || res.settled.Swap(true) {
		return nil
	}
	asks := make([]sluice.Ask, 0, len(res.charges))
	for _, c := range res.charges {
		actual, ok := c.rule.Actual(h)
		if !ok || actual == c.charged {
			continue
		}
		a := c.ask
		a.Mode, a.N, a.At = sluice.Settle, actual-c.charged, c.at
		asks = append(asks, a)
	}
	if len(asks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	_, err := sluice.TakeAll(ctx, res.store, asks)
	return err
}

// takeShadows takes the shadow limits of the rules one by one, and adds what is to be settled of them to res. Their
// verdicts and errors are the observer's of the store.
func takeShadows(r *http.Request, store sluice.Store, rules []*policy.Rule, res *Reservation) *Reservation {
	for _, rule := range rules {
		if rule.Enforced() == len(rule.Limits) {
			continue
		}
		cost := rule.Cost(r)
		for i := range rule.Limits {
			l := &rule.Limits[i]
			if !l.Shadow {
				continue
			}
			ask := l.Ask(r, cost)
			d, err := store.Take(r.Context(), ask)
			if err == nil && rule.Settle != "" {
				res = res.add(store, rule, ask, d)
			}
		}
	}
	return res
}
