-- One beat of an instance, and how many live: those that beat within ARGV[2] ms, by the server's clock.
-- KEYS[1]  the group: a sorted set of instances by the time of their last beat.
-- ARGV: the instance; ms that a beat counts, or '' to sign off.  Reply: how many live.
local call, key, id, keep = redis.call, KEYS[1], ARGV[1], ARGV[2]
if keep == '' then
  call('ZREM', key, id)
  return call('ZCARD', key)
end
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
call('ZADD', key, string.format('%.0f', now), id)
call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - keep))
call('PEXPIRE', key, keep)
return call('ZCARD', key)
