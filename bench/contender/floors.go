package contender

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
)

func openPing(addr string, _ sluice.Limit) (Limiter, error) {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	return Limiter{
		Take: func(ctx context.Context, _ string) (bool, error) {
			err := client.Ping(ctx).Err()
			return err == nil, err
		},
		Close: client.Close,
	}, nil
}

func openReturn1(addr string, _ sluice.Limit) (Limiter, error) {
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	script := goredis.NewScript("return 1")
	return Limiter{
		Take: func(ctx context.Context, key string) (bool, error) {
			err := script.Run(ctx, client, []string{key}).Err()
			return err == nil, err
		},
		Close: client.Close,
	}, nil
}
