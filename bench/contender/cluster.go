package contender

import (
	"strings"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/redis"
)

// Clusters returns ours and the base, each on one node and on a cluster. They ignore the address that Open is given.
func Clusters(one string, cluster []string) []Contender {
	at := func(addr string, open func(string, sluice.Limit) (Limiter, error)) func(string, sluice.Limit) (Limiter, error) {
		return func(_ string, l sluice.Limit) (Limiter, error) { return open(addr, l) }
	}
	all := strings.Join(cluster, "&addr=")
	return []Contender{
		{Base, "redis_rate on one node", Peer, at(one, openRedisRate)},
		{Base + ", cluster", "redis_rate on the cluster, go-redis's default client", Peer, at(strings.Join(cluster, ","), openRedisRateCluster)},
		{Main, "store/redis on one node", Ours, at(one, opened("open", nil))},
		{Main + ", cluster", "store/redis on the cluster, its client made by Open", Ours, at(strings.Replace(all, "&", "?", 1), openedCluster)},
	}
}

func openRedisRateCluster(addrs string, l sluice.Limit) (Limiter, error) {
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: strings.Split(addrs, ",")})
	return redisRate(redis_rate.NewLimiter(client), l, client.Close), nil
}

func openedCluster(addrs string, l sluice.Limit) (Limiter, error) {
	s, err := redis.Open("redis+cluster://"+addrs, redis.Options{})
	if err != nil {
		return Limiter{}, err
	}
	return limiter(s, "open", l, s.Close)
}
