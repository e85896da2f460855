-- Token bucket: tokens spent, regained at a steady rate.
-- words: spent, ts, unit.  p[1] units per token, p[2] units regained per tick, p[3] burst, p[4] µs per tick (1 if left out)
-- Times are µs; every quantity is a whole number below 2^52. level.lua, with the function level, stands before this file.

local function take(s, now, n, p)
  local floor, per, gain, burst, tick = math.floor, p[1], p[2], p[3], p[4] or 1
  local spent, ts, unit = s[1], s[2], s[3]
  if spent == 0 then ts, unit = now - now % tick, per end
  if spent < 0 or unit ~= per then -- a debt, or another limit's words
    local take_any = level(p)
    return take_any(s, now, n)
  end

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
  local reset = math.ceil(spent / gain) * tick
  if reset > 2251799813685248 then reset = 2251799813685248 - 2251799813685248 % tick end
  return true, { spent, ts, per }, ts + reset - now, spent < full and floor((full - spent) / per) or 0
end

local function adjust(s, now, n, at, p)
  local _, adjust_any = level(p)
  return adjust_any(s, now, n)
end
