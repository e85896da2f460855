-- Leaky bucket as a queue: units that wait, leaving at a steady rate.
-- words: queued, ts, unit.  p[1] units per place, p[2] units leaving per tick, p[3] burst, p[4] µs per tick
-- A negative queued includes a debt. Times are µs; every quantity is a whole number below 2^52.
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local function rescale_up(x, from, to) -- ceil(x * to / from) without a product above 2^52
  if to % from == 0 then return x * (to / from) end
  local whole, part, s = floor(x / from), x % from, ceil(from / 67108864)
  part, from = ceil(part / s), floor(from / s)
  return whole * to + part * floor(to / from) + ceil(part * (to % from) / from)
end

local function rescale_down(x, from, to) -- floor(x * to / from), likewise
  if to % from == 0 then return x * (to / from) end
  local whole, part, s = floor(x / from), x % from, ceil(from / 67108864)
  part, from = floor(part / s), ceil(from / s)
  return whole * to + part * floor(to / from) + floor(part * (to % from) / from)
end

local function common(unit, places, per) -- the unit that serves both limits of a key
  local small, large = min(unit, per), max(unit, per)
  local u = large
  if large % small ~= 0 and small <= floor(1048576 / large) then u = small * large end
  if places > floor(4503599627370496 / u) then u = per end
  if places > floor(4503599627370496 / per) then u = unit end
  return u
end

local function held(queued, owed, unit, p) -- the level at ts as this limit sees it, clamped
  local most, per = owed and 2 * p[3] or p[3], p[1]
  if unit ~= per then
    if floor(queued / unit) >= most then return most * per end
    queued = rescale_up(queued, unit, per)
  end
  return min(queued, most * per)
end

local function drain(x, ticks, gain)
  if ticks >= ceil(x / gain) then return 0 end
  return x - ticks * gain
end

local function reset_after(queued, ts, unit, now, p) -- µs until the stored level is zero
  if queued == 0 then return 0 end
  local per, gain, tick = p[1], p[2], p[4]
  local most = floor(2251799813685248 / tick)
  local ticks = most
  if floor(queued / unit) < floor(4503599627370496 / per) then
    if unit ~= per then queued = rescale_up(queued, unit, per) end
    ticks = min(most, ceil(queued / gain))
  end
  return max(0, ts + ticks * tick - now)
end

local function words(s, now, p)
  local queued, ts, unit = s[1], s[2], s[3]
  local owed = queued < 0
  if owed then queued = -queued end
  if queued == 0 then ts, unit = now - now % p[4], p[1] end
  if unit < 1 then unit = p[1] end
  return queued, owed, ts, unit
end

local function elapsed(ts, now, tick) -- whole ticks; none where the clock stepped back
  if now <= ts then return 0 end
  return floor((now - ts) / tick)
end

local function bring(queued, ts, unit, now, passed, places, p) -- the stored level at now, unclamped
  local per, gain, tick = p[1], p[2], p[4]
  if unit == per then
    queued = drain(queued, passed, gain)
  else
    local u = common(unit, places, per)
    local gained = min(passed, floor(4503599627370496 / gain)) * gain
    if floor(gained / per) > floor(queued / unit) then
      queued = 0
    else
      queued = max(0, rescale_up(queued, unit, u) - rescale_down(gained, per, u))
    end
    unit = u
  end
  if queued == 0 then return 0, now - now % tick, per end
  return queued, ts + passed * tick, unit
end

local function take(s, now, n, p)
  local per, gain, burst, tick = p[1], p[2], p[3], p[4]
  local queued, owed, ts, unit = words(s, now, p)
  local full, passed = burst * per, elapsed(ts, now, tick)
  local before = drain(held(queued, owed, unit, p), passed, gain)
  if n == 0 or n < 0 or n > burst or before + n * per > full then
    return n == 0, nil, reset_after(queued, ts, unit, now, p), floor(max(0, full - before) / per)
  end

  queued, ts, unit = bring(queued, ts, unit, now, passed, floor(queued / unit) + 2 + n, p)
  queued = queued + n * unit
  owed = owed and queued > burst * unit
  return true, { owed and -queued or queued, ts, unit }, reset_after(queued, ts, unit, now, p),
    floor(max(0, full - held(queued, owed, unit, p)) / per)
end

local function adjust(s, now, n, at, p)
  local burst = p[3]
  local queued, owed, ts, unit = words(s, now, p)
  queued, ts, unit = bring(queued, ts, unit, now, elapsed(ts, now, p[4]), max(floor(queued / unit) + 2, 2 * burst), p)
  if n < 0 then
    queued = max(0, queued - min(-n, floor(queued / unit) + 1) * unit)
  elseif n > 0 and floor(queued / unit) < 2 * burst then
    queued = min(queued + min(n, 2 * burst) * unit, 2 * burst * unit, 4503599627370496)
    owed = true
  end
  if queued == 0 then return { 0, 0, 0 }, 0 end
  owed = owed and queued > burst * unit
  return { owed and -queued or queued, ts, unit }, reset_after(queued, ts, unit, now, p)
end
