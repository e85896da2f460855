-- Fixed window: a count that starts at 0 in each period, aligned to the Unix epoch.
-- words: count, start, period.  p[1] period in µs, p[2] units a period
-- Times are µs; every quantity is a whole number below 2^52.

local function running(s, now, p) -- the window that now lies in, and its count; a later one runs on
  local start = now - now % p[1]
  if s[3] == p[1] and s[2] >= start then
    return s[1] > 0 and s[1] or 0, s[2]
  end
  return 0, start
end

local function take(s, now, n, p)
  local period, most = p[1], p[2]
  local count, start = running(s, now, p)
  if n == 0 or n < 0 or count + n > most then
    return n == 0, nil, 0, count < most and most - count or 0
  end
  count = count + n
  return true, { count, start, period }, start + period - now, most - count
end

local function adjust(s, now, n, at, p)
  local period, most = p[1], p[2]
  local count, start = running(s, now, p)
  if n < 0 and at >= start then
    count = count + n
    if count < 0 then count = 0 end
  elseif n > 0 and count < 2 * most then
    count = count + n
    if count > 2 * most then count = 2 * most end
  end
  if count == 0 then return { 0, 0, 0 }, 0 end
  return { count, start, period }, start + period - now
end
