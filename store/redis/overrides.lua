-- KEYS[1] is the hash of overrides. ARGV: none: all fields and values, at most as many as may be set.
-- field, value, most: sets it, and answers 0 where as many as most are set already.
-- field, "", value: clears it, where value is not "" only if it is that yet, and answers how many went.
if #ARGV == 0 then
	return redis.call('HGETALL', KEYS[1])
end
local had = redis.call('HMGET', KEYS[1], ARGV[1])[1]
if ARGV[2] == '' then
	if ARGV[3] ~= '' and had ~= ARGV[3] then
		return 0
	end
	return redis.call('HDEL', KEYS[1], ARGV[1])
end
if not had and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
	return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
