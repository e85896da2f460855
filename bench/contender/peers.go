package contender

import (
	"context"
	"fmt"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	throttled "github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/sluice-go/sluice"
)

func openRedisRate(addr string, l sluice.Limit) (Limiter, error) {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	return redisRate(redis_rate.NewLimiter(client), l, client.Close), nil
}

// RedisRate is the base on a client, which stays the caller's to close.
func RedisRate(client goredis.UniversalClient, l sluice.Limit) Limiter {
	return redisRate(redis_rate.NewLimiter(client), l, func() error { return nil })
}

func redisRate(lim *redis_rate.Limiter, l sluice.Limit, stop func() error) Limiter {
	theirs := redis_rate.Limit{Rate: int(l.Count), Burst: int(l.Burst), Period: l.Period}
	return Limiter{
		Take: func(ctx context.Context, key string) (bool, error) {
			r, err := lim.Allow(ctx, key, theirs)
			if err != nil {
				return false, err
			}
			return r.Allowed > 0, nil
		},
		Close: stop,
	}
}

func openUlule(addr string, l sluice.Limit) (Limiter, error) {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	store, err := ululeredis.NewStore(client)
	if err != nil {
		_ = client.Close()
		return Limiter{}, fmt.Errorf("contender: ulule: %w", err)
	}
	lim := ulule.New(store, ulule.Rate{Period: l.Period, Limit: l.Count})
	return Limiter{
		Take: func(ctx context.Context, key string) (bool, error) {
			c, err := lim.Get(ctx, key)
			return err == nil && !c.Reached, err
		},
		Close: client.Close,
	}, nil
}

func openThrottled(addr string, l sluice.Limit) (Limiter, error) {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		_ = client.Close()
		return Limiter{}, fmt.Errorf("contender: throttled: %w", err)
	}
	lim, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(l.Count), l.Period), MaxBurst: int(l.Burst) - 1,
	})
	if err != nil {
		_ = client.Close()
		return Limiter{}, fmt.Errorf("contender: throttled: %w", err)
	}
	return Limiter{
		Take: func(ctx context.Context, key string) (bool, error) {
			limited, _, err := lim.RateLimitCtx(ctx, key, 1)
			return err == nil && !limited, err
		},
		Close: client.Close,
	}, nil
}
