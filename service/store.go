package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
	"github.com/sluice-go/sluice/telemetry"
)

// opened is the store of a Service, and what on_outage makes of it.
type opened struct {
	byOutage map[policy.OnOutage]sluice.Store
	local    map[policy.OnOutage]sluice.Store // the same in ModeLocal
	redis    *redis.Store                     // nil in process
	breaker  *failover.Breaker                // before Redis; nil in process
	kept     map[string]telemetry.LocalStore  // what keeps keys in this process
	gate     *gate                            // before Redis; nil in process
	close    func() error
}

// openStore opens what c says, or a store on o.Client.
func openStore(c policy.Config, o Options) (opened, error) {
	settings := redis.Options{Prefix: c.Store.Prefix, Timeout: c.Store.Timeout, Clock: o.Clock}
	switch {
	case o.Client != nil:
		return guarded(redis.New(o.Client, settings), c, o), nil
	case c.Store.Redis == "":
		return inProcess(o), nil
	}
	address, from, err := resolve(c.Store.Redis)
	if err != nil {
		return opened{}, err
	}
	st, err := redis.Open(address, settings)
	if err != nil {
		return opened{}, fmt.Errorf("service: store.redis: %s: %w", from, err) // which never quotes the URL
	}
	return guarded(st, c, o), nil
}

// inProcess is a store that no outage takes away.
func inProcess(o Options) opened {
	states := local.New(local.Options{Clock: o.Clock})
	st := observed(states, o)
	all := map[policy.OnOutage]sluice.Store{policy.Local: st, policy.Allow: st, policy.Deny: st}
	kept := map[string]telemetry.LocalStore{"states": states}
	return opened{byOutage: all, local: all, kept: kept, close: func() error { return nil }}
}

// guarded is a store in Redis with a breaker before it, and a fallback for each on_outage.
func guarded(st *redis.Store, c policy.Config, o Options) opened {
	breaker := failover.New(failover.Options{
		TripAfter: c.Failover.TripAfter,
		OpenFor:   c.Failover.OpenFor,
		Instances: c.Failover.Instances,
		Heartbeat: heartbeat(st, c),
		OnChange:  changed(o),
	})
	g := &gate{Store: st}
	buckets := local.NewBuckets(local.BucketsOptions{Clock: o.Clock, Share: breaker.Share})
	onBuckets := observed(breaker.Guard(g, buckets), o)
	return opened{
		byOutage: map[policy.OnOutage]sluice.Store{
			policy.Local: onBuckets,
			policy.Allow: observed(breaker.Guard(g, failover.AllowAll{}), o),
			policy.Deny:  observed(breaker.Guard(g, failover.DenyAll{}), o),
		},
		local:   map[policy.OnOutage]sluice.Store{policy.Local: onBuckets, policy.Allow: onBuckets, policy.Deny: onBuckets},
		redis:   st,
		breaker: breaker,
		kept:    map[string]telemetry.LocalStore{"buckets": buckets},
		gate:    g,
		close:   func() error { return errors.Join(breaker.Close(), st.Close()) },
	}
}

// heartbeat counts the instances of the file's group; nil where the file says how many there are.
func heartbeat(st *redis.Store, c policy.Config) func(context.Context) (int, error) {
	if c.Failover.Instances > 0 {
		return nil
	}
	group := cmp.Or(c.Failover.Group, c.Store.Prefix)
	return func(ctx context.Context) (int, error) { return st.Heartbeat(ctx, group) }
}

// changed logs the changes of a breaker, and tells who wants to know.
func changed(o Options) func(from, to failover.State) {
	return func(from, to failover.State) {
		level, now := slog.LevelWarn, "sluice: the store is away: rules decide as their on_outage says"
		switch to {
		case failover.HalfOpen:
			level, now = slog.LevelInfo, "sluice: probing the store"
		case failover.Closed:
			level, now = slog.LevelInfo, "sluice: the store is back"
		}
		o.Logger.Log(context.Background(), level, now, "from", from.String(), "to", to.String())
		if o.OnBreaker != nil {
			o.OnBreaker(from, to)
		}
	}
}

func observed(st sluice.Store, o Options) sluice.Store {
	if o.Observer == nil {
		return st
	}
	return sluice.Observe(st, o.Observer)
}

// gate is a store that can be put out of reach: in ModeLocal. To its guards that is an outage like another, so that
// nobody gets a fresh burst from the change of mode, neither on the way in nor on the way out.
type gate struct {
	*redis.Store
	shut atomic.Bool
}

var errShut = fmt.Errorf("%w: service: mode is local", sluice.ErrUnavailable)

func (g *gate) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if g.shut.Load() {
		return sluice.Decision{}, errShut
	}
	return g.Store.Take(ctx, a)
}

func (g *gate) TakeAll(ctx context.Context, asks []sluice.Ask) (sluice.Verdict, error) {
	if g.shut.Load() {
		return sluice.Verdict{}, errShut
	}
	return g.Store.TakeAll(ctx, asks)
}

// resolve returns the URL that store.redis stands for, and what to call it: "env:NAME" is the value of a variable,
// "file:PATH" the content of a file, without the spaces around it.
func resolve(where string) (address, from string, err error) {
	kind, rest, _ := strings.Cut(where, ":")
	switch kind {
	case "env":
		address, from = strings.TrimSpace(os.Getenv(rest)), "environment variable "+rest
		if address == "" {
			return "", "", fmt.Errorf("service: store.redis: %s is not set, want the URL of a Redis", from)
		}
	case "file":
		b, err := os.ReadFile(rest)
		if err != nil {
			return "", "", fmt.Errorf("service: store.redis: %w", err)
		}
		address, from = strings.TrimSpace(string(b)), "file "+rest
		if address == "" {
			return "", "", fmt.Errorf("service: store.redis: %s is empty, want the URL of a Redis", from)
		}
	default:
		address, from = where, "the URL in the rule file"
	}
	return address, from, nil
}
