package prom_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
	"github.com/sluice-go/sluice/telemetry"
	"github.com/sluice-go/sluice/telemetry/prom"
)

// A store, and what its process knows of itself.
func ExampleNewProcess() {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:6379"}) // not reached here
	defer client.Close()
	heartbeat := func(context.Context) (int, error) { return 1, nil }
	registry := prometheus.NewRegistry()

	metrics := prom.New(nil)
	store := sluice.Observe(redis.New(client, redis.Options{}), metrics)
	registry.MustRegister(metrics)

	breaker := failover.New(failover.Options{Heartbeat: heartbeat, OnChange: metrics.BreakerChanged})
	buckets := local.NewBuckets(local.BucketsOptions{Share: breaker.Share})
	registry.MustRegister(prom.NewProcess(telemetry.Process{
		Breaker: breaker.State,
		Share:   breaker.Share,
		Stores:  map[string]telemetry.LocalStore{"buckets": buckets},
	}))
	defer breaker.Close()

	limited := breaker.Guard(store, buckets)
	_ = limited // what limiters are made on
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "sluice_local") {
			fmt.Println(f.GetName())
		}
	}
	// Output:
	// sluice_local_keys
	// sluice_local_overflow_decisions_total
}
