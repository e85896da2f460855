package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
)

// Eyes are what an [Admin] knows of a process beside its Service: set them as the Service's Observer. The zero Eyes are
// ready and safe for concurrent use.
type Eyes struct {
	Top Top

	ready   atomic.Bool
	asked   atomic.Int64 // when Redis last decided, ns since the Unix epoch; 0: never
	instead atomic.Int64 // when something decided in its place
}

// Observe takes note of a decision.
func (e *Eyes) Observe(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
	if err == nil {
		switch d.Source {
		case sluice.Shared:
			note(&e.asked)
		case sluice.Local, sluice.Assumed:
			note(&e.instead)
		}
	}
	e.Top.Observe(ctx, a, d, err, took)
}

// noteEvery keeps what all decisions share from being written by each of them.
const noteEvery = 10 * time.Millisecond

func note(at *atomic.Int64) {
	if now := time.Now().UnixNano(); now-at.Load() > int64(noteEvery) {
		at.Store(now)
	}
}

// SetReady says whether all listeners are open: /readyz answers 503 where they are not.
func (e *Eyes) SetReady(ready bool) { e.ready.Store(ready) }

// unread is how long overrides may stay unread before Redis counts as away: they are read every two seconds.
const unread = 10 * time.Second

// degraded tells whether rules that share their states in Redis are decided without it, as far as this process has seen.
// It asks nobody.
func (e *Eyes) degraded(s *service.Service, st service.Status, now time.Time) bool {
	if s.Rules().Config().Store.Redis == "" || st.Mode == policy.ModeLocal || st.Mode == policy.ModeOff {
		return false
	}
	good := max(e.asked.Load(), unixNano(st.OverridesRead))
	return e.instead.Load() > good || now.UnixNano()-good > int64(unread)
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
