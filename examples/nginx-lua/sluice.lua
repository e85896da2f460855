-- One budget with every Sluice process. Without Redis: fixed windows in a shared dictionary, of this server's share.
local function part(s) -- of a key, as docs/lua.md has it. For subjects up to 128 bytes: nginx has no SHA-256
  return s == "" and "%" or (s:gsub("[^A-Za-z0-9._:@/-]", function(c) return ("%%%02X"):format(c:byte()) end))
end
local function call(o, key, n, command, text)
  local tcp, reply, words = ngx.socket.tcp(), {}, { command, text, "1", key, "", ("%.0f"):format(n), unpack(o.params) }
  for i, w in ipairs(words) do words[i] = "$" .. #w .. "\r\n" .. w .. "\r\n" end
  tcp:settimeouts(o.timeout or 50, o.timeout or 50, o.timeout or 50) -- ms
  local ok, why = tcp:connect(o.host, o.port)
  if ok then ok, why = tcp:send({ "*", #words, "\r\n", words }) end
  for i = 0, 4 do
    if ok then ok, why = tcp:receive() end
    reply[i] = ok and tonumber(ok:match(i == 0 and "^%*(4)$" or "^:(-?%d+)$"))
    if not reply[i] then return nil, ok or why end
  end
  return reply, tcp:setkeepalive(10000, 64) -- ms, connections
end
return { take = function(o, subject, n) -- {allowed, remaining, retry_after_ms, reset_after_ms}
  if type(n) ~= "number" or n < 0 or n % 1 ~= 0 then error("sluice: n: " .. tostring(n) .. ": want a whole number >= 0", 2) end
  local key, reply, why = "sluice:{" .. part(subject) .. "}:" .. part(o.rule) .. ":" .. o.algorithm, nil, "away"
  if not o.dict:get(why) then reply, why = call(o, key, n, "EVALSHA", o.sha) end -- away: no reply, for 1 s
  if not reply and why:find("^-NOSCRIPT") then reply, why = call(o, key, n, "EVAL", o.script) end -- nothing was executed
  if reply then return reply end
  if why ~= "away" and o.dict:add(why:match("^-%S*") or "away", 1, 1) then ngx.log(ngx.ERR, "sluice: counts locally: ", why) end
  local most, left = math.max(1, math.floor(o.count * o.share)), math.ceil((o.period - ngx.now() % o.period) * 1000)
  local used = o.dict:incr(key, math.min(n, most + 1), 0, left / 1000) or most + n -- gone when the window ends
  if used <= most then return { 1, most - used, 0, left } end
  return { 0, math.max(0, most - (o.dict:incr(key, -math.min(n, most + 1)) or most)), n > most and -1 or left, left }
end }
