-- KEYS[i]  the state of ask i; a key may occur twice.
-- ARGV: now in µs, or '' for the server's clock; then for each ask: algorithm (1.. by name), mode, n, at, the number of
-- parameters, the parameters. Modes: 0 charge, 1 peek, 2 up to, 3 settle, 4 reset.
-- Reply: {seconds, µs, the ask that refused or 0, then for each ask that was tried: charged, three words as they were}.
-- charged is '-1' where the words are unusable. A refusal, or unusable words, write nothing.
local call, find, format = redis.call, string.find, string.format
local digits = format('%d', 4503599627370496) == '4503599627370496' and '%d' or '%.0f' -- where a long has 64 bits
local t = ARGV[1]
if t == '' then t = call('TIME') else t = { '0', t } end
local now = t[1] * 1000000 + t[2]

local function whole(w) -- the word as a number, or nil
  local x = w and find(w, '^%-?%d+$') and tonumber(w)
  if x and x <= 4503599627370496 and x >= -4503599627370496 then return x end
end

local function load(key, names) -- the words as they are, and the state, or nil if it is unusable
  local w = call('HMGET', key, names[1], names[2], names[3])
  if not (w[1] or w[2] or w[3]) then return w, { 0, 0, 0 } end
  local s = { whole(w[1]), whole(w[2]), whole(w[3]) }
  if s[1] and s[2] and s[3] then return w, s end
  return w, nil
end

local reply, refused = { t[1], t[2], '0' }, 0
local open, order = {}, {} -- what is loaded, by key; and in order
local i = 2
for k = 1, #KEYS do
  local key, which, mode = KEYS[k], tonumber(ARGV[i]), ARGV[i + 1]
  local n, at, p = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), {}
  local count = tonumber(ARGV[i + 4])
  for j = 1, count do p[j] = tonumber(ARGV[i + 4 + j]) end
  i = i + 5 + count

  local charged, w = 0, { false, false, false }
  if mode == '4' then
    call('DEL', key)
  else
    local o = open[key]
    if not o then
      o = { key = key, names = words[which] }
      o.words, o.state = load(key, o.names)
      open[key], order[#order + 1] = o, o
    end
    w = o.words
    if not o.state then
      order, charged = {}, -1
    elseif mode == '3' then
      o.state, o.reset = adjusts[which](o.state, now, n, at, p)
      o.changed = true
    else
      local allowed, kept, reset, remaining = takes[which](o.state, now, n, p)
      if allowed then
        charged = n
      elseif mode == '2' and remaining > 0 then
        allowed, kept, reset = takes[which](o.state, now, remaining, p)
        charged = remaining
      end
      if mode == '1' then
        charged = 0
      elseif kept then
        o.state, o.reset, o.changed = kept, reset, true
      end
      if not allowed and mode ~= '2' then refused = k end
    end
  end
  local r = #reply
  reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = format(digits, charged), w[1], w[2], w[3]
  if refused > 0 or charged < 0 then break end
end

if refused > 0 then
  reply[3] = format(digits, refused)
  return reply
end
for k = 1, #order do
  local o = order[k]
  local s = o.state
  if not o.changed then
    -- nothing to keep
  elseif s[1] == 0 and s[2] == 0 and s[3] == 0 then
    call('DEL', o.key)
  else
    call('HSET', o.key, o.names[1], format(digits, s[1]), o.names[2], format(digits, s[2]), o.names[3], format(digits, s[3]))
    local ms = math.ceil(o.reset / 1000)
    if ARGV[1] ~= '' then ms = ms + 60000 end -- a caller's clock that lags must not find a fresh state
    call('PEXPIRE', o.key, format(digits, ms > 0 and ms or 1))
  end
end
return reply
