package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/store/redis"
)

// racer is a way to decide in Redis.
type racer struct {
	name string
	make func(c *goredis.Client, st sluice.Strategy, timeout time.Duration) decider
}

// decider asks for one token, and says how often it began again.
type decider func(ctx context.Context) (allowed bool, retries int64, err error)

func racers() []racer {
	return []racer{{"naive", naive}, {"watch", watch}, {"lua", lua}}
}

// naive reads the state, computes, and writes it back. It sets no expiry, which would be a command more.
func naive(c *goredis.Client, st sluice.Strategy, _ time.Duration) decider {
	const key = "race:naive"
	script, _ := st.Lua()
	return func(ctx context.Context) (bool, int64, error) {
		state, err := readState(ctx, c, key, script.Words)
		if err != nil {
			return false, 0, err
		}
		next, d := st.Take(state, algorithm.Clock(time.Now()), 1)
		if !d.Allowed {
			return false, 0, nil
		}
		return true, 0, writeState(ctx, c, key, script.Words, next)
	}
}

// watch does as naive does, and begins again, at once, where the key has changed meanwhile.
func watch(c *goredis.Client, st sluice.Strategy, _ time.Duration) decider {
	const key = "race:watch"
	script, _ := st.Lua()
	return func(ctx context.Context) (allowed bool, retries int64, err error) {
		attempt := func(tx *goredis.Tx) error {
			state, err := readState(ctx, tx, key, script.Words)
			if err != nil {
				return err
			}
			next, d := st.Take(state, algorithm.Clock(time.Now()), 1)
			allowed = d.Allowed
			if !allowed {
				return nil
			}
			_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error { return writeState(ctx, p, key, script.Words, next) })
			return err
		}
		for {
			err = c.Watch(ctx, attempt, key)
			if !errors.Is(err, goredis.TxFailedErr) {
				return allowed && err == nil, retries, err
			}
			retries++
		}
	}
}

// lua asks this module's store.
func lua(c *goredis.Client, st sluice.Strategy, timeout time.Duration) decider {
	store, ask := engine(c, timeout), luaAsk(st, 1)
	return func(ctx context.Context) (bool, int64, error) {
		d, err := store.Take(ctx, ask)
		return d.Allowed, 0, err
	}
}

// warmScript makes the server know the script, by asking for no token.
func warmScript(ctx context.Context, c *goredis.Client, st sluice.Strategy) error {
	if _, err := engine(c, connectTime).Take(ctx, luaAsk(st, 0)); err != nil {
		return fmt.Errorf("lab: before the run: %w", err)
	}
	return nil
}

// engine is this module's store, each decision a command of its own.
func engine(c *goredis.Client, timeout time.Duration) *redis.Store {
	return redis.New(c, redis.Options{Timeout: timeout, NoCoalescing: true, NoKnownDenials: true})
}

func luaAsk(st sluice.Strategy, n int64) sluice.Ask {
	return sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "race", Subject: "lua"}, N: n}
}

// readState reads a hash as the store writes it.
func readState(ctx context.Context, c goredis.HashCmdable, key string, words []string) (s algorithm.State, err error) {
	values, err := c.HMGet(ctx, key, words...).Result()
	if err != nil {
		return s, err
	}
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			continue // not there
		}
		if s[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return s, fmt.Errorf("lab: race: %s: %w", words[i], err)
		}
	}
	return s, nil
}

func writeState(ctx context.Context, c goredis.HashCmdable, key string, words []string, s algorithm.State) error {
	return c.HSet(ctx, key, words[0], s[0], words[1], s[1], words[2], s[2]).Err()
}
