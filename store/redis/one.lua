-- One charge: the form that nearly every decision takes. The algorithm's file stands before it.
-- KEYS[1]  the state.  ARGV: now in µs, or '' for the server's clock; n; the strategy's parameters.
-- Reply: {seconds, µs, charged, three words as they were}; charged is '-1' where the words are unusable.
local call, key, clock, t = redis.call, KEYS[1], ARGV[1], nil
if clock == '' then t = call('TIME') else t = { '0', clock } end
local now = t[1] * 1000000 + t[2]
local n = ARGV[2] == '1' and 1 or tonumber(ARGV[2]) -- most often 1: no parsing
local p = { tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] and tonumber(ARGV[5]), ARGV[6] and tonumber(ARGV[6]) }
for i = 7, #ARGV do p[i - 2] = tonumber(ARGV[i]) end

local w = call('HMGET', key, word1, word2, word3)
local a, b, c = w[1], w[2], w[3]
local s, third
if a and b and c then
  local find = string.find
  local x, y, z = find(a, '^%-?%d+$') and tonumber(a), find(b, '^%-?%d+$') and tonumber(b), nil
  if c == ARGV[3] then z = p[1] else z = find(c, '^%-?%d+$') and tonumber(c) end -- most often a parameter: no parsing
  local most = 4503599627370496
  if not (x and y and z) or x > most or x < -most or y > most or y < -most or z > most or z < -most then
    return { t[1], t[2], '-1', a, b, c }
  end
  s, third = { x, y, z }, z
elseif a or b or c then
  return { t[1], t[2], '-1', a, b, c }
else
  s = { 0, 0, 0 }
end

local allowed, kept, reset = take(s, now, n, p)
if kept then
  local format = string.format
  local digits = format('%d', 4503599627370496) == '4503599627370496' and '%d' or '%.0f' -- where a long has 64 bits
  if kept[1] == 0 and kept[2] == 0 and kept[3] == 0 then
    call('DEL', key)
  else
    if kept[3] == third then
      call('HSET', key, word1, format(digits, kept[1]), word2, format(digits, kept[2]))
    else
      call('HSET', key, word1, format(digits, kept[1]), word2, format(digits, kept[2]), word3, format(digits, kept[3]))
    end
    reset = math.ceil(reset / 1000)
    if clock ~= '' then reset = reset + 60000 end -- a caller's clock that lags must not find a fresh state
    call('PEXPIRE', key, format(digits, reset > 0 and reset or 1))
  end
end
return { t[1], t[2], allowed and ARGV[2] or '0', a, b, c }
