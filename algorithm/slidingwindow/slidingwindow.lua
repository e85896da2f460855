-- Sliding window of two counters: the previous window's count weighs by what is left of the running one.
-- words: previous, current, start.  p[1] period in ticks, p[2] units a period, p[3] µs per tick
-- A negative counter includes a debt. Times are µs; every quantity is a whole number below 2^52.

local function running(s, now, span) -- the counters as of the window that now lies in; a later one runs on
  local start, stored = now - now % span, s[3]
  if stored >= start and stored % span == 0 then return s[1], s[2], stored end
  if stored == start - span then return s[2], 0, start end
  return 0, 0, start
end

local function take(s, now, n, p)
  local period, most, tick = p[1], p[2], p[3]
  local previous, current, start = running(s, now, period * tick)
  local count, weighed, left = current, previous, period
  if current < 0 then count = -current end
  if previous < 0 then
    weighed = -previous
    if weighed > 2 * most then weighed = 2 * most end
  elseif previous > most then
    weighed = most
  end
  if now > start then left = period - math.floor((now - start) / tick) end
  local spent = count
  if weighed > 0 then spent = count + math.ceil(weighed * left / period) end
  if n == 0 or n < 0 or spent + n > most then
    return n == 0, nil, 0, spent < most and most - spent or 0
  end
  return true, { previous, count + n, start }, start + 2 * period * tick - now, most - spent - n
end

local function adjust(s, now, n, at, p)
  local span, most = p[1] * p[3], p[2]
  local previous, current, start = running(s, now, span)
  local count, owed = math.abs(current), current < 0
  if n < 0 and at >= start then
    count = math.max(0, count + n)
  elseif n > 0 and count < 2 * most then
    count, owed = math.min(count + n, 2 * most), true
  end
  if count == 0 and previous == 0 then return { 0, 0, 0 }, 0 end
  local ends = start + span - now -- when the previous window no longer weighs
  if count > 0 then ends = ends + span end
  if owed and count > most then count = -count end
  return { previous, count, start }, ends
end
