-- What is kept of one key. Writes nothing.
-- KEYS[1]  the state.  ARGV: now in µs, or '' for the server's clock; the names of its three words.
-- Reply: {seconds, µs, ms that the key lives yet as PTTL has it, or nil to a user who may not ask, three words}.
local key, clock, t = KEYS[1], ARGV[1], nil
if clock == '' then t = redis.call('TIME') else t = { '0', clock } end
local w = redis.call('HMGET', key, ARGV[2], ARGV[3], ARGV[4])
local ttl = redis.pcall('PTTL', key) -- a right that no decision needs
if type(ttl) ~= 'number' then ttl = false end
return { t[1], t[2], ttl, w[1], w[2], w[3] }
