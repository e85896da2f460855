package lab

import (
	"context"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
)

// blocker is a way to decide whose cost to others is measured.
type blocker struct {
	name string
	// make prepares it, and returns a function that decides once, and a key that it keeps. Both are nil and "" where
	// nothing is decided.
	make  maker
	most  int           // decisions that it was prepared for; 0: any number
	every time.Duration // between two decisions; 0: as the experiment says
}

func blockers(st sluice.Strategy) []blocker {
	bucket := bucketOf(st)
	return []blocker{
		{name: "alone", make: nobody},
		{name: "token_bucket", make: bucket},
		{name: "token_bucket_1000_per_s", make: bucket, every: time.Millisecond},
		{name: "log_zset", make: logOf("zset", zsetTrimmed, fillZset)},
		{name: "log_zset_pause", make: logsAfterPause, most: pauses},
		{name: "log_zset_counted", make: logOf("counted", zsetCounted, fillZset)},
		{name: "log_list_walked", make: logOf("list", listWalked, fillList)},
	}
}

// maker is what blocker.make is.
type maker = func(ctx context.Context, c *goredis.Client, entries int) (decide func(context.Context) error, key string, err error)

func nobody(context.Context, *goredis.Client, int) (func(context.Context) error, string, error) {
	return nil, "", nil
}

// bucketOf makes a way that asks this module's store.
func bucketOf(st sluice.Strategy) maker {
	return func(ctx context.Context, c *goredis.Client, _ int) (func(context.Context) error, string, error) {
		store := engine(c, blockTime)
		ask := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "block", Subject: "bucket"}, N: 1}
		decide := func(ctx context.Context) error { _, err := store.Take(ctx, ask); return err }
		script, _ := st.Lua()
		return decide, "sluice:{bucket}:block:" + script.Name, decide(ctx)
	}
}

// The logs' scripts. KEYS[1] the log.  ARGV: the window in µs; the limit; a name for this request. Reply: 1 if allowed.
// They are written as such scripts commonly are.
const (
	logHead = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local oldest = string.format('%.0f', now - ARGV[1])
`
	logTail = `
if count >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
return 1
`
	// O(log n) and the number of entries that are removed.
	zsetTrimmed = logHead + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', oldest)
local count = redis.call('ZCARD', KEYS[1])
` + logTail

	// O(n): the window's entries pass into Lua to be counted.
	zsetCounted = logHead + `
local count = #redis.call('ZRANGEBYSCORE', KEYS[1], oldest, '+inf')
` + logTail

	// O(n): a list of times, all of which are looked at.
	listWalked = logHead + `
local count = 0
oldest = tonumber(oldest)
for _, at in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if tonumber(at) >= oldest then count = count + 1 end
end
if count >= tonumber(ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
return 1
`
)

// logOf makes a way that runs a script on one log, filled with a window of entries.
func logOf(name, script string, fill func(context.Context, *goredis.Client, string, int, time.Duration) error) maker {
	return func(ctx context.Context, c *goredis.Client, entries int) (func(context.Context) error, string, error) {
		key := "block:" + name
		if err := fill(ctx, c, key, entries, blockTime); err != nil {
			return nil, "", err
		}
		run := logScript(c, script, entries)
		if err := run(ctx, key+":empty"); err != nil { // the server knows it from now on
			return nil, "", err
		}
		return func(ctx context.Context) error { return run(ctx, key) }, key, nil
	}
}

// pauses is how many logs are prepared that were left alone: a decision makes a log that was trimmed of each.
const pauses = 3

// logsAfterPause makes a way that decides on logs whose entries have all left the window.
func logsAfterPause(ctx context.Context, c *goredis.Client, entries int) (func(context.Context) error, string, error) {
	key := func(i int) string { return "block:left:" + strconv.Itoa(i) }
	for i := range pauses {
		if err := fillZset(ctx, c, key(i), entries, 2*blockTime); err != nil {
			return nil, "", err
		}
	}
	run := logScript(c, zsetTrimmed, entries)
	next := 0
	return func(ctx context.Context) error {
		next++
		return run(ctx, key(next-1))
	}, key(pauses - 1), nil
}

// logScript runs a log's script on a key, each time for another request.
func logScript(c *goredis.Client, script string, entries int) func(ctx context.Context, key string) error {
	sha, requests := goredis.NewScript(script), 0
	return func(ctx context.Context, key string) error {
		requests++
		if err := sha.Run(ctx, c, []string{key}, blockTime.Microseconds(), entries+mostEntries, requests).Err(); err != nil {
			return fmt.Errorf("lab: block: %w", err)
		}
		return nil
	}
}

// filling is how many entries are written at once.
const filling = 1000

// fillZset writes entries that lie evenly in the blockTime that began ago.
func fillZset(ctx context.Context, c *goredis.Client, key string, entries int, ago time.Duration) error {
	return fill(ctx, c, entries, ago, func(p goredis.Pipeliner, times []float64, from int) {
		members := make([]goredis.Z, len(times))
		for i, t := range times {
			members[i] = goredis.Z{Score: t, Member: "r" + strconv.Itoa(from+i)}
		}
		p.ZAdd(ctx, key, members...)
	})
}

// fillList is fillZset for a list.
func fillList(ctx context.Context, c *goredis.Client, key string, entries int, ago time.Duration) error {
	return fill(ctx, c, entries, ago, func(p goredis.Pipeliner, times []float64, _ int) {
		members := make([]any, len(times))
		for i, t := range times {
			members[i] = int64(t)
		}
		p.RPush(ctx, key, members...)
	})
}

func fill(ctx context.Context, c *goredis.Client, entries int, ago time.Duration, write func(p goredis.Pipeliner, times []float64, from int)) error {
	first := time.Now().Add(-ago).UnixMicro()
	for from := 0; from < entries; from += filling {
		times := make([]float64, min(filling, entries-from))
		for i := range times {
			times[i] = float64(first + blockTime.Microseconds()*int64(from+i)/int64(entries))
		}
		if _, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error { write(p, times, from); return nil }); err != nil {
			return fmt.Errorf("lab: block: %w", err)
		}
	}
	return nil
}
