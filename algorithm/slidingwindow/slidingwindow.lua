-- Sliding window of two counters: the previous window's count weighs by what is left of the running one.
-- words: previous, current, start.  p[1] period in ticks, p[2] units a period, p[3] µs per tick
-- A negative counter includes a debt. Times are µs; every quantity is a whole number below 2^52.
local floor, ceil, abs, min, max = math.floor, math.ceil, math.abs, math.min, math.max

local function running(s, now, p) -- the counters as of the window that now lies in; a later one runs on
  local period, stored = p[1] * p[3], s[3]
  local start = now - now % period
  if stored >= start and stored % period == 0 then return s[1], s[2], stored end
  if stored == start - period then return s[2], 0, start end
  return 0, 0, start
end

local function reset_after(previous, current, start, now, p) -- µs until neither counter weighs
  if current ~= 0 then return start + 2 * p[1] * p[3] - now end
  if previous ~= 0 then return start + p[1] * p[3] - now end
  return 0
end

local function take(s, now, n, p)
  local period, most, tick = p[1], p[2], p[3]
  local previous, current, start = running(s, now, p)
  local weighed, left = min(previous, most), period
  if previous < 0 then weighed = min(-previous, 2 * most) end
  if now > start then left = period - floor((now - start) / tick) end
  local spent = ceil(weighed * left / period) + abs(current)
  if n == 0 or n < 0 or spent + n > most then
    return n == 0, nil, reset_after(previous, current, start, now, p), max(0, most - spent)
  end
  current = abs(current) + n
  return true, { previous, current, start }, reset_after(previous, current, start, now, p), most - spent - n
end

local function adjust(s, now, n, at, p)
  local most = p[2]
  local previous, current, start = running(s, now, p)
  local count, owed = abs(current), current < 0
  if n < 0 and at >= start then
    count = max(0, count + n)
  elseif n > 0 and count < 2 * most then
    count, owed = min(count + n, 2 * most), true
  end
  if count == 0 and previous == 0 then return { 0, 0, 0 }, 0 end
  if owed and count > most then count = -count end
  return { previous, count, start }, reset_after(previous, count, start, now, p)
end
