-- A level in full, the twin of level.go: also for a state that another limit wrote, or that includes a debt, and to
-- adjust one. It is made on demand, so that the usual decision, in the algorithm's own file, pays for none of it.
-- words: the level at ts in units (negative: it includes a debt), ts, units per token.
-- p[1] units per token, p[2] units regained per tick, p[3] burst in tokens, p[4] µs per tick (1 if left out)

local function level(p) -- take and adjust under these parameters
  local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
  local per, gain, burst, tick = p[1], p[2], p[3], p[4] or 1

  local function rescale_up(x, from, to) -- ceil(x * to / from) without a product above 2^52
    if to % from == 0 then return x * (to / from) end
    if from % to == 0 then return ceil(x / (from / to)) end
    local whole, part, s = floor(x / from), x % from, ceil(from / 67108864)
    part, from = ceil(part / s), floor(from / s)
    return whole * to + part * floor(to / from) + ceil(part * (to % from) / from)
  end

  local function rescale_down(x, from, to) -- floor(x * to / from), likewise
    if to % from == 0 then return x * (to / from) end
    if from % to == 0 then return floor(x / (from / to)) end
    local whole, part, s = floor(x / from), x % from, ceil(from / 67108864)
    part, from = floor(part / s), ceil(from / s)
    return whole * to + part * floor(to / from) + floor(part * (to % from) / from)
  end

  local function common(unit, tokens) -- a unit for a state that another limit wrote
    local small, large = min(unit, per), max(unit, per)
    local u = large
    if large % small ~= 0 and small <= floor(1048576 / large) then u = small * large end
    if tokens > floor(4503599627370496 / u) then u = per end
    if tokens > floor(4503599627370496 / per) then u = unit end
    return u
  end

  local function words(s, now) -- a key never seen starts empty on the tick that is running
    local spent, ts, unit = s[1], s[2], s[3]
    local owed = spent < 0
    if owed then spent = -spent end
    if spent == 0 then ts, unit = now - now % tick, per end
    if unit < 1 then unit = per end
    return spent, owed, ts, unit
  end

  local function held(spent, owed, unit) -- the level at ts as this limit sees it, in its own units, clamped
    local most = owed and 2 * burst or burst
    if unit ~= per then
      if floor(spent / unit) >= most then return most * per end
      spent = rescale_up(spent, unit, per)
    end
    return min(spent, most * per)
  end

  local function reset(spent, ts, unit, now) -- µs until the stored level, unclamped, is zero
    if spent == 0 then return 0 end
    local most = floor(2251799813685248 / tick)
    local ticks = most
    if unit == per or floor(spent / unit) < floor(4503599627370496 / per) then
      if unit ~= per then spent = rescale_up(spent, unit, per) end
      ticks = min(most, ceil(spent / gain))
    end
    return max(0, ts + ticks * tick - now)
  end

  local function bring(spent, ts, unit, now, n) -- the stored level, unclamped, at now, with room for n more
    local passed = now > ts and floor((now - ts) / tick) or 0
    if unit == per then
      spent = max(0, spent - passed * gain)
    else
      local u = common(unit, floor(spent / unit) + 2 + max(n, 0))
      local gained = min(passed, floor(4503599627370496 / gain)) * gain
      if floor(gained / per) > floor(spent / unit)
        or floor(spent / unit) < floor(4503599627370496 / per) and passed >= ceil(rescale_up(spent, unit, per) / gain) then
        spent = 0 -- also where what is left is only what rounding added
      else
        spent = max(0, rescale_up(spent, unit, u) - rescale_down(gained, per, u))
      end
      unit = u
    end
    if spent == 0 then return 0, now - now % tick, per end
    return spent, ts + passed * tick, unit
  end

  local function take(s, now, n)
    local spent, owed, ts, unit = words(s, now)
    local full, passed = burst * per, now > ts and floor((now - ts) / tick) or 0
    local before = max(0, held(spent, owed, unit) - passed * gain)
    if n == 0 or n < 0 or n > burst or before + n * per > full then
      return n == 0, nil, 0, max(0, floor((full - before) / per))
    end
    spent, ts, unit = bring(spent, ts, unit, now, n)
    spent = spent + n * unit
    owed = owed and spent > burst * unit
    return true, { owed and -spent or spent, ts, unit }, reset(spent, ts, unit, now),
      max(0, floor((full - held(spent, owed, unit)) / per))
  end

  local function adjust(s, now, n)
    local spent, owed, ts, unit = words(s, now)
    local most = 2 * burst
    spent, ts, unit = bring(spent, ts, unit, now, max(min(n, most), most - floor(spent / unit) - 2))
    if n < 0 then
      spent = max(0, spent - min(-n, floor(spent / unit) + 1) * unit)
    elseif n > 0 and floor(spent / unit) < most then
      spent = min(spent + min(n, most) * unit, most * unit, 4503599627370496)
      owed = true
    end
    if spent == 0 then return { 0, 0, 0 }, 0 end
    owed = owed and spent > burst * unit
    return { owed and -spent or spent, ts, unit }, reset(spent, ts, unit, now)
  end

  return take, adjust
end
