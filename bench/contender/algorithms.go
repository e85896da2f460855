package contender

import (
	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/redis"
)

// Algorithms returns the base and each of this module's algorithms, every decision a script call of its own: what
// they cost on the server.
func Algorithms() []Contender {
	windowed := func(l sluice.Limit) sluice.Limit { l.Burst = 0; return l }
	return []Contender{
		{Base, "GCRA", Peer, openRedisRate},
		{"token bucket", "one script call for each decision", Ours, alone("bucket", func(l sluice.Limit) (sluice.Strategy, error) { return tokenbucket.New(l) })},
		{"leaky bucket", "one script call for each decision", Ours, alone("leaky", func(l sluice.Limit) (sluice.Strategy, error) { return leaky.New(l) })},
		{"fixed window", "one script call for each decision", Ours, alone("fixed", func(l sluice.Limit) (sluice.Strategy, error) { return fixedwindow.New(windowed(l)) })},
		{"sliding window", "one script call for each decision", Ours, alone("sliding", func(l sluice.Limit) (sluice.Strategy, error) { return slidingwindow.New(windowed(l)) })},
	}
}

// alone is the store that sends each decision by itself, and asks about every one.
func alone(rule string, makes func(sluice.Limit) (sluice.Strategy, error)) func(string, sluice.Limit) (Limiter, error) {
	return func(addr string, l sluice.Limit) (Limiter, error) {
		s, err := redis.Open("redis://"+addr, redis.Options{NoCoalescing: true, NoKnownDenials: true})
		if err != nil {
			return Limiter{}, err
		}
		return strategic(s, rule, l, s.Close, makes)
	}
}
