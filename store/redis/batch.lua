-- Charges of many callers under one strategy: one load and one save for all that name the same key. The algorithm's
-- file stands before it.
-- KEYS[i]  the state of charge i; charges of one key follow one another.
-- ARGV: now in µs, or '' for the server's clock; the number of parameters, the parameters; then for each key: n, and how
-- many callers ask for that n one after the other. Left out where one caller asks for 1 on each key.
-- Reply: {seconds, µs, how many callers were allowed in all, then for each key, once, its three words as they were}.
-- A key whose words are unusable is left alone, and allows nobody.
local call, find, format, floor, ceil = redis.call, string.find, string.format, math.floor, math.ceil
local clock, t = ARGV[1], nil
if clock == '' then t = call('TIME') else t = { '0', clock } end
local now = t[1] * 1000000 + t[2]
local p, i, most = {}, 3, 4503599627370496
for j = 1, tonumber(ARGV[2]) do p[j], i = tonumber(ARGV[i]), i + 1 end
local unit, ones = ARGV[3], ARGV[i] == nil -- the first parameter is most often the third word: no parsing
local digits = format('%d', most) == '4503599627370496' and '%d' or '%.0f' -- the fast one, where a long has 64 bits

local reply, r, passed = { t[1], t[2], '0' }, 3, 0
local k, count, found = 1, #KEYS, { 0, 0, 0 } -- one table for the states as they are loaded
while k <= count do
  local key = KEYS[k]
  local w = call('HMGET', key, word1, word2, word3)
  local a, b, c = w[1], w[2], w[3]
  reply[r + 1], reply[r + 2], reply[r + 3], r = a, b, c, r + 3
  local s, third
  if a and b and c then
    local x, y = find(a, '^%-?%d+$') and tonumber(a), find(b, '^%-?%d+$') and tonumber(b)
    if c == unit then third = p[1] else third = find(c, '^%-?%d+$') and tonumber(c) end
    if x and y and third and x <= most and x >= -most and y <= most and y >= -most and third <= most and third >= -most then
      found[1], found[2], found[3] = x, y, third
      s = found
    end
  elseif not (a or b or c) then
    found[1], found[2], found[3] = 0, 0, 0
    s = found
  end

  local kept, reset
  if ones then
    if s then
      local allowed, after, left = take(s, now, 1, p)
      if allowed then passed, kept, reset = passed + 1, after, left end
    end
    k = k + 1
  else
    repeat
      if s then
        local n, times = ARGV[i], ARGV[i + 1]
        n, times = n == '1' and 1 or tonumber(n), times == '1' and 1 or tonumber(times)
        local allowed, after, left, remaining = take(s, now, n, p)
        if allowed then
          if after then s, kept, reset = after, after, left end
          passed, times = passed + 1, times - 1
          if times > 0 then -- the others ask for the same: at one instant, many charges are one
            allowed, after, left, remaining = take(s, now, n * times, p)
            if not allowed then
              times = floor(remaining / n)
              allowed, after, left = take(s, now, n * times, p)
            end
            if after then s, kept, reset = after, after, left end
            passed = passed + times
          end
        end
      end
      k, i = k + 1, i + 2
    until KEYS[k] ~= key
  end

  if not kept then
    -- nothing to keep
  elseif kept[1] == 0 and kept[2] == 0 and kept[3] == 0 then
    call('DEL', key)
  else
    if kept[3] == third then
      call('HSET', key, word1, format(digits, kept[1]), word2, format(digits, kept[2]))
    else
      call('HSET', key, word1, format(digits, kept[1]), word2, format(digits, kept[2]), word3, format(digits, kept[3]))
    end
    reset = ceil(reset / 1000)
    if clock ~= '' then reset = reset + 60000 end -- a caller's clock that lags must not find a fresh state
    call('PEXPIRE', key, format(digits, reset > 0 and reset or 1))
  end
end
reply[3] = format(digits, passed)
return reply
