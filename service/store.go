package service

import (
	"fmt"
	"os"
	"strings"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

// opened is the store of a Service, and what on_outage makes of it.
type opened struct {
	byOutage map[policy.OnOutage]sluice.Store
	shared   bool // in Redis
	close    func() error
}

// openStore opens what c says, or a store on o.Client.
func openStore(c policy.StoreConfig, o Options) (opened, error) {
	settings := redis.Options{Prefix: c.Prefix, Timeout: c.Timeout, Clock: o.Clock}
	switch {
	case o.Client != nil:
		st := redis.New(o.Client, settings)
		return around(st, true, st.Close, o), nil
	case c.Redis == "":
		nothing := func() error { return nil }
		return around(local.New(local.Options{Clock: o.Clock}), false, nothing, o), nil
	}
	address, from, err := resolve(c.Redis)
	if err != nil {
		return opened{}, err
	}
	st, err := redis.Open(address, settings)
	if err != nil {
		return opened{}, fmt.Errorf("service: store.redis: %s: %w", from, err) // which never quotes the URL
	}
	return around(st, true, st.Close, o), nil
}

// around says what each on_outage decides with. There is no failover yet: all refuse while Redis is away, as deny
// says, and policy.Config.Warnings tells so.
func around(st sluice.Store, shared bool, closing func() error, o Options) opened {
	if o.Observer != nil {
		st = sluice.Observe(st, o.Observer)
	}
	return opened{
		byOutage: map[policy.OnOutage]sluice.Store{policy.Local: st, policy.Allow: st, policy.Deny: st},
		shared:   shared,
		close:    closing,
	}
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
