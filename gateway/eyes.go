package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/telemetry"
)

// Eyes are what an [Admin] knows of a process beside its Service: set them as the Service's Observer. The zero Eyes are
// ready and safe for concurrent use.
type Eyes struct {
	Top Top // without shadows, which refuse nobody, once the Eyes are an Admin's

	ready  atomic.Bool
	limits atomic.Pointer[telemetry.Limits[telemetry.Limit]] // tells shadows; nil until Admin knows the rules
}

// Observe takes note of a decision.
func (e *Eyes) Observe(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
	if !refuses(a, d, err) {
		return
	}
	if limits := e.limits.Load(); limits != nil && limits.Of(a.Key.Rule, a.Strategy).Shadow {
		return
	}
	e.Top.Observe(ctx, a, d, err, took)
}

// follow learns from the rules as they change which limits are shadows.
func (e *Eyes) follow(s *service.Service) {
	e.limits.Store(telemetry.NewLimits(s.Rules, func(l telemetry.Limit) *telemetry.Limit { return &l }))
}

// SetReady says whether all listeners are open: /readyz answers 503 where they are not.
func (e *Eyes) SetReady(ready bool) { e.ready.Store(ready) }

// unread is how long overrides may stay unread before Redis counts as away: they are read every two seconds, also where
// there are no requests that a breaker could count.
const unread = 10 * time.Second

// degraded tells whether rules that share their states in Redis are decided without it, as far as this process has seen.
// It asks nobody.
func degraded(s *service.Service, st service.Status, now time.Time) bool {
	breaker := s.Process().Breaker
	if breaker == nil || st.Mode == policy.ModeLocal || st.Mode == policy.ModeOff {
		return false
	}
	return breaker() != failover.Closed || now.Sub(st.OverridesRead) > unread
}
