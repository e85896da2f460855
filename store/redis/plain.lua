-- What a charge decided, in four whole numbers, for clients that have no half of the algorithm of their own.
-- The algorithm's file stands before it, and one.lua as the function charge: KEYS and ARGV are those of one.lua.
-- Reply: {allowed, remaining, retry_after_ms, reset_after_ms}. allowed: 1 or 0. remaining: units that would pass now.
-- retry_after_ms: until the same n would pass, rounded up; 0 if allowed, -1 if it never can. reset_after_ms: until the
-- state is as good as new, rounded up. n = 0 asks and charges nothing. An n that is no whole number from 0 on, and
-- words that are unusable, are errors, and nothing was written.
local n = tonumber(ARGV[2])
if not n or n < 0 or n % 1 ~= 0 then return { err = 'COST n: want a whole number from 0 on' } end
local r = charge()
if r[3] == '-1' then return { err = 'STATE the words of the key are unusable: DEL heals it' } end

-- The same step once more, on the words as they were.
local floor, ceil, p, s = math.floor, math.ceil, {}, { 0, 0, 0 }
for i = 3, #ARGV do p[i - 2] = tonumber(ARGV[i]) end
if r[4] then s = { tonumber(r[4]), tonumber(r[5]), tonumber(r[6]) } end
local now = r[1] * 1000000 + r[2]
local allowed, kept, reset, remaining = take(s, now, n, p)
if not kept then kept, reset = adjust(s, now, 0, now, p) end
reset = ceil(reset / 1000)

local retry = 0
if not allowed and not take({ 0, 0, 0 }, now, n, p) then
  retry = -1
elseif not allowed then
  -- Time alone lets it pass, by reset at the latest: at most 43 halvings, 14 for a period of 10 s.
  local low
  low, retry = 0, reset > 0 and reset or 1
  while retry - low > 1 do
    local ms = floor((low + retry) / 2)
    if take(s, now + ms * 1000, n, p) then retry = ms else low = ms end
  end
end
return { allowed and 1 or 0, remaining, retry, reset }
