-- Leaky bucket as a queue: units that wait, leaving at a steady rate.
-- words: queued, ts, unit.  p[1] units per place, p[2] units leaving per tick, p[3] burst, p[4] µs per tick (1 if left out)
-- Times are µs; every quantity is a whole number below 2^52. level.lua stands before this file.

local function take_any(s, now, n, p) -- take, where another limit wrote the state or a debt stands in it
  local per, gain, burst, tick = p[1], p[2], p[3], p[4] or 1
  local words, held, reset, bring = level(p)
  local queued, owed, ts, unit = words(s, now)
  local full, passed = burst * per, now > ts and floor((now - ts) / tick) or 0
  local before = math.max(0, held(queued, owed, unit) - passed * gain)
  if n == 0 or n < 0 or n > burst or before + n * per > full then
    return n == 0, nil, 0, math.max(0, floor((full - before) / per))
  end
  queued, ts, unit = bring(queued, ts, unit, now, n)
  queued = queued + n * unit
  owed = owed and queued > burst * unit
  return true, { owed and -queued or queued, ts, unit }, reset(queued, ts, unit, now),
    math.max(0, floor((full - held(queued, owed, unit)) / per))
end

local function take(s, now, n, p)
  local per, gain, burst, tick = p[1], p[2], p[3], p[4] or 1
  local queued, ts, unit = s[1], s[2], s[3]
  if queued == 0 then ts, unit = now - now % tick, per end
  if queued < 0 or unit ~= per then return take_any(s, now, n, p) end

  local full, passed, before = burst * per, 0, queued
  if now > ts then passed = floor((now - ts) / tick) end
  if before > full then before = full end
  before = before - passed * gain
  if before < 0 then before = 0 end
  if n == 0 or n < 0 or n > burst or before + n * per > full then
    return n == 0, nil, 0, floor((full - before) / per)
  end

  queued = queued - passed * gain
  if queued > 0 then ts = ts + passed * tick else queued, ts = 0, now - now % tick end
  queued = queued + n * per
  local reset = ceil(queued / gain) * tick
  if reset > 2251799813685248 then reset = 2251799813685248 - 2251799813685248 % tick end
  return true, { queued, ts, per }, ts + reset - now, queued < full and floor((full - queued) / per) or 0
end

local function adjust(s, now, n, at, p)
  local burst, min, max = p[3], math.min, math.max
  local words, _, reset, bring = level(p)
  local queued, owed, ts, unit = words(s, now)
  queued, ts, unit = bring(queued, ts, unit, now, max(min(n, 2 * burst), 2 * burst - floor(queued / unit) - 2))
  if n < 0 then
    queued = max(0, queued - min(-n, floor(queued / unit) + 1) * unit)
  elseif n > 0 and floor(queued / unit) < 2 * burst then
    queued = min(queued + min(n, 2 * burst) * unit, 2 * burst * unit, 4503599627370496)
    owed = true
  end
  if queued == 0 then return { 0, 0, 0 }, 0 end
  owed = owed and queued > burst * unit
  return { owed and -queued or queued, ts, unit }, reset(queued, ts, unit, now)
end
