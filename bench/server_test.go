package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

const (
	rounds   = 15
	perRound = 4000
	callers  = 16 // at once: a server that is at work, as it is where its time counts
)

// TestServerTime prints the time that one decision takes on the server, from INFO commandstats, as a ratio to
// redis_rate's: allowed and denied, each against its like.
func TestServerTime(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client()
	store := redis.New(client, redis.Options{Timeout: 5 * time.Second})
	peer := redis_rate.NewLimiter(client)

	fast := sluice.Limit{Count: 1_000_000, Period: time.Second, Burst: 1_000_000}
	slow := sluice.Limit{Count: 1, Period: time.Hour, Burst: 1}
	limiters := func(l sluice.Limit) map[string]*sluice.Limiter {
		w := l
		w.Burst = 0
		rule := fmt.Sprint(l.Count)
		return map[string]*sluice.Limiter{
			"token bucket":   sluice.New(store, sluice.Must(tokenbucket.New(l)), rule),
			"leaky bucket":   sluice.New(store, sluice.Must(leaky.New(l)), rule),
			"fixed window":   sluice.New(store, sluice.Must(fixedwindow.New(w)), rule),
			"sliding window": sluice.New(store, sluice.Must(slidingwindow.New(w)), rule),
		}
	}
	for _, work := range []struct {
		name  string
		limit sluice.Limit
	}{{"denied", slow}, {"allowed", fast}} {
		ours := limiters(work.limit)
		names := []string{"token bucket", "leaky bucket", "fixed window", "sliding window"}
		took := map[string][]float64{}
		measure := func(name string, f func()) {
			if err := client.ConfigResetStat(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range perRound / callers {
						f()
					}
				})
			}
			wg.Wait()
			took[name] = append(took[name], usecPerCall(t, client))
		}
		theirs := redis_rate.Limit{Rate: int(work.limit.Count), Burst: int(work.limit.Burst), Period: work.limit.Period}
		for range rounds {
			measure("redis_rate", func() {
				if _, err := peer.Allow(ctx, "k "+work.name, theirs); err != nil {
					t.Error(err)
				}
			})
			for _, n := range names {
				measure(n, func() {
					if _, err := ours[n].Allow(ctx, "k"); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
		base := median(took["redis_rate"])
		t.Logf("server time, %s: redis_rate %.2f µs", work.name, base)
		for _, n := range names {
			m := median(took[n])
			t.Logf("server time, %s: %-14s %.2f µs, %.2f of redis_rate", work.name, n, m, m/base)
			if m > 100 {
				t.Errorf("%s, %s: %.1f µs on the server: want below 100", n, work.name, m)
			}
		}
	}
}

// usecPerCall is the mean time of an EVALSHA since the statistics were reset, µs.
func usecPerCall(t *testing.T, c *goredis.Client) float64 {
	info, err := c.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(info, "cmdstat_evalsha:")
	if !ok {
		t.Fatal("no evalsha in commandstats")
	}
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	text, _, _ := strings.Cut(rest, ",")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
