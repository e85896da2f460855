package contender

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/redis"
)

func noCoalescing(o *redis.Options)   { o.NoCoalescing = true }
func noKnownDenials(o *redis.Options) { o.NoKnownDenials = true }

// opened is the store on a client that it opens itself. Contenders differ in their rule, so that they share no key; the
// rules are equally long.
func opened(rule string, edit func(*redis.Options)) func(string, sluice.Limit) (Limiter, error) {
	return func(addr string, l sluice.Limit) (Limiter, error) {
		s, err := redis.Open("redis://"+addr, options(edit))
		if err != nil {
			return Limiter{}, err
		}
		return limiter(s, rule, l, s.Close)
	}
}

// handed is the store on a client as the peers have it.
func handed(rule string, edit func(*redis.Options)) func(string, sluice.Limit) (Limiter, error) {
	return func(addr string, l sluice.Limit) (Limiter, error) {
		client := goredis.NewClient(&goredis.Options{Addr: addr})
		s := redis.New(client, options(edit))
		return limiter(s, rule, l, func() error { return errors.Join(s.Close(), client.Close()) })
	}
}

// Sluice is ours on a client, which stays the caller's to close.
func Sluice(client goredis.UniversalClient, l sluice.Limit) (Limiter, error) {
	s := redis.New(client, redis.Options{})
	return limiter(s, "hand", l, s.Close)
}

// SluiceOpen is ours on a client of its own.
func SluiceOpen(addr string, l sluice.Limit) (Limiter, error) { return opened("open", nil)(addr, l) }

func options(edit func(*redis.Options)) redis.Options {
	var o redis.Options
	if edit != nil {
		edit(&o)
	}
	return o
}

func limiter(s sluice.Store, rule string, l sluice.Limit, stop func() error) (Limiter, error) {
	return strategic(s, rule, l, stop, func(l sluice.Limit) (sluice.Strategy, error) { return tokenbucket.New(l) })
}

func strategic(s sluice.Store, rule string, l sluice.Limit, stop func() error, makes func(sluice.Limit) (sluice.Strategy, error)) (Limiter, error) {
	st, err := makes(l)
	if err != nil {
		_ = stop()
		return Limiter{}, fmt.Errorf("contender: sluice: %w", err)
	}
	lim := sluice.New(s, st, rule)
	return Limiter{
		Take: func(ctx context.Context, key string) (bool, error) {
			d, err := lim.Allow(ctx, key)
			return d.Allowed, err
		},
		Close: stop,
	}, nil
}
