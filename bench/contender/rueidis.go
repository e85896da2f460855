package contender

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/sluice-go/sluice"
)

// gcra is about the least that a limiter's script can do: one integer per key, the time when the bucket is full again.
// It rounds to whole microseconds, so it is no limiter to use; it shows what a lean script through a client that
// pipelines by itself costs.
const gcra = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + ARGV[1]
if full - now > tonumber(ARGV[2]) then
  return {0, full - now - ARGV[2]}
end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
return {1, full - now}
`

func openRueidis(addr string, l sluice.Limit) (Limiter, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return Limiter{}, fmt.Errorf("contender: rueidis: %w", err)
	}
	script := rueidis.NewLuaScript(gcra)
	each := max(1, l.Period.Microseconds()/l.Count)
	args := []string{strconv.FormatInt(each, 10), strconv.FormatInt(each*l.Burst, 10)}
	return Limiter{
		Take: func(ctx context.Context, key string) (bool, error) {
			reply, err := script.Exec(ctx, client, []string{"rueidis:" + key}, args).ToArray()
			if err != nil {
				return false, err
			}
			if len(reply) != 2 {
				return false, fmt.Errorf("contender: rueidis: reply of %d, want 2", len(reply))
			}
			allowed, err := reply[0].AsInt64()
			return allowed == 1, err
		},
		Close: func() error { client.Close(); return nil },
	}, nil
}
