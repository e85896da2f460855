package service

import (
	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// generation is what one reading of the file and of the overrides made. It is immutable, but that its limiters follow
// the overrides.
type generation struct {
	rules    *policy.Rules
	stores   map[policy.OnOutage]sluice.Store
	limits   *httplimit.Middleware
	limiters *limiters
}

// use makes rules the ones that requests are matched by from now on. The limiters are those of the same reading of the
// file; nil: it is a new one.
func (s *Service) use(rules *policy.Rules, limiters *limiters) {
	config := rules.Config()
	byOutage := s.store.byOutage
	if config.Mode == policy.ModeLocal {
		byOutage = s.store.local
	}
	if limiters == nil {
		limiters = newLimiters(rules, byOutage, s.now)
	}
	limiters.follow(rules)
	g := &generation{rules: rules, stores: byOutage, limiters: limiters, limits: httplimit.New(httplimit.Options{
		Rules:   rules,
		Stores:  byOutage,
		Style:   config.Headers,
		OnError: s.failures.report,
	})}
	if s.store.gate == nil {
		s.current.Store(g)
		return
	}
	// Redis is out of reach only while all rules decide on buckets: none is to answer for an outage by allow or deny.
	if config.Mode != policy.ModeLocal {
		s.store.gate.shut.Store(false)
	}
	s.current.Store(g)
	if config.Mode == policy.ModeLocal {
		s.store.gate.shut.Store(true)
	}
}
