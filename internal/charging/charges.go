package charging

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// settleTime bounds a settlement, beside the store's own timeout: the call ends after it.
const settleTime = time.Second

// Charges are what a call was charged under rules with settle, until it is known what it cost. They are settled once;
// until then they stay charged.
type Charges struct {
	store sluice.Store // the one that charged
	list  []charge
}

// charge is what one limit was charged.
type charge struct {
	rule    *policy.Rule
	ask     sluice.Ask // as it was taken
	charged int64
	at      int64 // the store's clock, µs
}

// Pass takes the shadow limits of a call that t allows, one by one, and returns what is to be settled, of shadows too.
// Their answers, and errors, are the observer's of the store, which is the one that t is from.
func (c Call) Pass(ctx context.Context, store sluice.Store, t *Taken) Charges {
	charges := Charges{store: store}
	charges.enforced(c, t)
	charges.shadows(ctx, c)
	return charges
}

// enforced adds what the limits that are no shadows were charged.
func (s *Charges) enforced(c Call, t *Taken) {
	first := 0
	for i := range c {
		rule := c[i].Rule
		n := rule.Enforced()
		for j := first; rule.Settle != "" && j < min(first+n, len(t.Each)); j++ {
			s.add(rule, t.Asks[j], t.Each[j])
		}
		first += n
	}
}

// shadows takes the shadows, and adds what they were charged.
func (s *Charges) shadows(ctx context.Context, c Call) {
	for i := range c {
		p := &c[i]
		if p.Rule.Enforced() == len(p.Rule.Limits) {
			continue
		}
		for j := range p.Rule.Limits {
			l := &p.Rule.Limits[j]
			if !l.Shadow {
				continue
			}
			ask := l.Ask(p.Request, p.Cost)
			d, err := s.store.Take(ctx, ask)
			if err == nil && p.Rule.Settle != "" {
				s.add(p.Rule, ask, d)
			}
		}
	}
}

// add adds a charge, if there was one that could be corrected.
func (s *Charges) add(rule *policy.Rule, ask sluice.Ask, d sluice.Decision) {
	if !d.Allowed || d.Charged <= 0 || d.Source == sluice.Assumed {
		return
	}
	s.list = append(s.list, charge{rule: rule, ask: ask, charged: d.Charged, at: d.At})
}

// Any tells whether there is something to settle.
func (s Charges) Any() bool { return len(s.list) > 0 }

// Headers are the names that the charges are settled by, each once, in their canonical form.
func (s Charges) Headers() []string {
	var names []string
	for i := range s.list {
		if name := s.list[i].rule.Settle; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Settle corrects each charge to what h says that the call cost: less is given back, more is owed, up to one burst; see
// [policy.Rule.Actual]. A charge of which h says nothing stands. It also runs where ctx is already done, under the
// store's own timeout, and a second at most. The error is the store's.
func (s Charges) Settle(ctx context.Context, h http.Header) error {
	asks := make([]sluice.Ask, 0, len(s.list))
	for _, c := range s.list {
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
	_, err := sluice.TakeAll(ctx, s.store, asks)
	return err
}
