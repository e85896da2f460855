package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// ErrNoRedis means that a rule file names no Redis: its states are inside the processes that serve it.
var ErrNoRedis = errors.New("service: store.redis is missing: states are inside the processes that serve the file, where no other can look")

// patience is the least timeout of what an operator asks: a command is worth a longer wait than a request.
const patience = 2 * time.Second

// Direct opens the Redis of a configuration by itself: with no breaker before it, no fallback and nothing known
// beforehand, so that an operator who asks gets Redis's own answer or an error, within two seconds or the file's timeout,
// whichever is longer. The caller closes it. The error is [ErrNoRedis], or names where the URL came from and never quotes
// it.
func Direct(c policy.Config) (*redis.Store, error) {
	if c.Store.Redis == "" {
		return nil, ErrNoRedis
	}
	address, from, err := resolve(c.Store.Redis)
	if err != nil {
		return nil, err
	}
	st, err := redis.Open(address, direct(c, c.Store.Prefix))
	if err != nil {
		return nil, fmt.Errorf("service: store.redis: %s: %w", from, err)
	}
	return st, nil
}

// direct are the options of a store that an operator asks.
func direct(c policy.Config, prefix string) redis.Options {
	return redis.Options{Prefix: prefix, Timeout: max(c.Store.Timeout, patience), NoCoalescing: true, NoKnownDenials: true}
}
