-- Token bucket: tokens spent, regained at a steady rate.
-- words: spent, ts, unit.  p[1] units per token, p[2] units regained per tick, p[3] burst, p[4] µs per tick (1 if left out)
-- Times are µs; every quantity is a whole number below 2^52. level.lua stands before this file.

local function take_any(s, now, n, p) -- take, where another limit wrote the state or a debt stands in it
  local per, gain, burst, tick = p[1], p[2], p[3], p[4] or 1
  local words, held, reset, bring = level(p)
  local spent, owed, ts, unit = words(s, now)
  local full, passed = burst * per, now > ts and floor((now - ts) / tick) or 0
  local before = math.max(0, held(spent, owed, unit) - passed * gain)
  if n == 0 or n < 0 or n > burst or before + n * per > full then
    return n == 0, nil, 0, math.max(0, floor((full - before) / per))
  end
  spent, ts, unit = bring(spent, ts, unit, now, n)
  spent = spent + n * unit
  owed = owed and spent > burst * unit
  return true, { owed and -spent or spent, ts, unit }, reset(spent, ts, unit, now),
    math.max(0, floor((full - held(spent, owed, unit)) / per))
end

local function take(s, now, n, p)
  local per, gain, burst, tick = p[1], p[2], p[3], p[4] or 1
  local spent, ts, unit = s[1], s[2], s[3]
  if spent == 0 then ts, unit = now - now % tick, per end
  if spent < 0 or unit ~= per then return take_any(s, now, n, p) end

  local full, passed, before = burst * per, 0, spent
  if now > ts then passed = floor((now - ts) / tick) end
  if before > full then before = full end
  before = before - passed * gain
  if before < 0 then before = 0 end
  if n == 0 or n < 0 or n > burst or before + n * per > full then
    return n == 0, nil, 0, floor((full - before) / per)
  end

  spent = spent - passed * gain
  if spent > 0 then ts = ts + passed * tick else spent, ts = 0, now - now % tick end
  spent = spent + n * per
  local reset = ceil(spent / gain) * tick
  if reset > 2251799813685248 then reset = 2251799813685248 - 2251799813685248 % tick end
  return true, { spent, ts, per }, ts + reset - now, spent < full and floor((full - spent) / per) or 0
end

local function adjust(s, now, n, at, p)
  local burst, min, max = p[3], math.min, math.max
  local words, _, reset, bring = level(p)
  local spent, owed, ts, unit = words(s, now)
  spent, ts, unit = bring(spent, ts, unit, now, max(min(n, 2 * burst), 2 * burst - floor(spent / unit) - 2))
  if n < 0 then
    spent = max(0, spent - min(-n, floor(spent / unit) + 1) * unit)
  elseif n > 0 and floor(spent / unit) < 2 * burst then
    spent = min(spent + min(n, 2 * burst) * unit, 2 * burst * unit, 4503599627370496)
    owed = true
  end
  if spent == 0 then return { 0, 0, 0 }, 0 end
  owed = owed and spent > burst * unit
  return { owed and -spent or spent, ts, unit }, reset(spent, ts, unit, now)
end
