package lab

import (
	"github.com/sluice-go/sluice"
)

// keeper is a way to keep a token bucket's numbers.
type keeper struct {
	name     string
	strategy sluice.Strategy
	script   string // "": this module's store
	second   int64  // the script's time is in parts of a second, so many
}

func keepers(st sluice.Strategy) []keeper {
	return []keeper{
		{name: "integers", strategy: st},
		{name: "float", strategy: st, second: 1, script: naiveHead + naiveFloat},
		{name: "tostring", strategy: st, second: 1e6, script: naiveHead + naiveToString},
		{name: "concatenated", strategy: st, second: 1, script: naiveHead + naiveConcatenated},
		{name: "cjson", strategy: st, second: 1, script: naiveHead + naiveJSON},
		{name: "whole_tokens", strategy: st, second: 1e6, script: naiveHead + naiveWhole},
	}
}

// Token buckets as they are commonly written. KEYS[1] the bucket.  ARGV: now, in seconds with a fraction or in µs; tokens
// regained in one of these; the
// burst. Reply: {1 if allowed, the time as it was kept}.
const (
	naiveHead = `
local key, now, rate, burst = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local function refill(tokens, ts)
  return math.min(burst, (tokens or burst) + math.max(0, now - (ts or now)) * rate)
end
`
	// Doubles, passed to Redis as numbers, which writes all their digits.
	naiveFloat = `
local w = redis.call('HMGET', key, 'tokens', 'ts')
local tokens, allowed = refill(tonumber(w[1]), tonumber(w[2])), 0
if tokens >= 1 then tokens, allowed = tokens - 1, 1 end
redis.call('HSET', key, 'tokens', tokens, 'ts', now)
return { allowed, redis.call('HGET', key, 'ts') }
`
	// The same in µs, with the numbers turned to text by Lua.
	naiveToString = `
local w = redis.call('HMGET', key, 'tokens', 'ts')
local tokens, allowed = refill(tonumber(w[1]), tonumber(w[2])), 0
if tokens >= 1 then tokens, allowed = tokens - 1, 1 end
redis.call('HSET', key, 'tokens', tostring(tokens), 'ts', tostring(now))
return { allowed, redis.call('HGET', key, 'ts') }
`
	// A string of both, by the operator.
	naiveConcatenated = `
local was = redis.call('GET', key) or ''
local a, b = string.match(was, '^(%S+):(%S+)$')
local tokens, allowed = refill(tonumber(a), tonumber(b)), 0
if tokens >= 1 then tokens, allowed = tokens - 1, 1 end
redis.call('SET', key, tokens .. ':' .. now)
return { allowed, string.match(redis.call('GET', key), ':(.*)$') }
`
	// JSON.
	naiveJSON = `
local was, old = redis.call('GET', key), {}
if was then old = cjson.decode(was) end
local tokens, allowed = refill(old.tokens, old.ts), 0
if tokens >= 1 then tokens, allowed = tokens - 1, 1 end
redis.call('SET', key, cjson.encode({ tokens = tokens, ts = now }))
return { allowed, string.match(redis.call('GET', key), '"ts":([^,}]+)') }
`
	// Whole tokens, written with every request.
	naiveWhole = `
local w = redis.call('HMGET', key, 'tokens', 'ts')
local tokens, allowed = math.floor(refill(tonumber(w[1]), tonumber(w[2]))), 0
if tokens >= 1 then tokens, allowed = tokens - 1, 1 end
redis.call('HSET', key, 'tokens', tokens, 'ts', string.format('%.0f', now))
return { allowed, redis.call('HGET', key, 'ts') }
`
)
