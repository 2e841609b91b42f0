--[[
hamlet.lua asks hamlet about each message that rspamd scans, and inserts the symbol HAMLET.

The score of HAMLET is the verdict's margin beyond the border of spam, in nats:

    min(logit p - logit spam-at, logit lo)

It is 0 or more exactly where hamlet says spam. Its options are the verdict, p, the ends
of its interval, and the words that counted most where the gateway has --field-words.

It asks the scan door of hamlet's gateway (--rspamd ADDR). Without an answer in time the
message gets HAMLET_UNAVAILABLE, whose score is 0, and rspamd goes on without hamlet.

To install it, copy this file to /etc/rspamd/plugins.d/ and hamlet.conf, which stands
beside it, to the end of /etc/rspamd/rspamd.conf.local.
]]

if confighelp then
  rspamd_config:add_example(nil, 'hamlet', 'Asks hamlet for a verdict', [[
hamlet {
  url = "http://127.0.0.1:11433/checkv2";
}
]])
  return
end

local N = 'hamlet'
local lua_util = require 'lua_util'
local rspamd_http = require 'rspamd_http'
local rspamd_logger = require 'rspamd_logger'
local ucl = require 'ucl'

local settings = {
  url = 'http://127.0.0.1:11433/checkv2', -- the gateway's scan door
  timeout = 2.5,         -- seconds; the gateway itself answers after 2
  symbol = 'HAMLET',
  offset = 0,            -- added to the score of every verdict
  least = -100,          -- the score is cut there
  most = 100,            -- and there
  max_size = 26214400,   -- bytes; hamlet reads no larger message
}

local UNAVAILABLE -- the symbol of a message without a verdict

-- verdicts are the names of hamlet's symbols.
local verdicts = {
  HAMLET_SPAM = 'spam',
  HAMLET_UNSURE = 'unsure',
  HAMLET_HAM = 'ham',
}

-- most_recipients bounds the field Rcpt, in bytes: hamlet takes 64 KiB of header.
local most_recipients = 32768

-- recipients returns the envelope's recipients as one field: <a@b>, <c@d>. A list that
-- is too long ends early: hamlet then does not know the later ones' tenants.
local function recipients(task)
  local list, size = {}, 0
  for _, r in ipairs(task:get_recipients('smtp') or {}) do
    if r.addr and r.addr ~= '' then
      local address = '<' .. r.addr .. '>'
      size = size + #address + 2
      if size > most_recipients then
        break
      end
      list[#list + 1] = address
    end
  end
  return table.concat(list, ', ')
end

-- headers says whose mail it is. The gateway maps that to a tenant.
local function headers(task)
  local h = {}
  local function set(name, value)
    if value and value ~= '' then
      h[name] = value
    end
  end
  set('Rcpt', recipients(task))
  local deliver_to = task:get_request_header('Deliver-To')
  set('Deliver-To', deliver_to and tostring(deliver_to))
  set('User', task:get_user())
  set('Queue-Id', task:get_queue_id())
  return h
end

-- answered inserts the symbol of an answer. It returns why there is none.
local function answered(task, body)
  local parser = ucl.parser()
  local ok, err = parser:parse_text(body)
  if not ok then
    return 'the answer is no JSON: ' .. tostring(err)
  end
  local answer = parser:get_object()
  local score, required = tonumber(answer.score), tonumber(answer.required_score)
  if type(answer.symbols) ~= 'table' or not score or not required then
    return 'the answer is not one of rspamd\'s'
  end
  for name, symbol in pairs(answer.symbols) do
    if verdicts[name] and not answer.is_skipped then
      local options = { verdicts[name] }
      for _, option in ipairs(symbol.options or {}) do
        options[#options + 1] = tostring(option)
      end
      local value = score - required + settings.offset
      value = math.max(settings.least, math.min(settings.most, value))
      task:insert_result(settings.symbol, value, options)
      return nil
    end
    if name == 'HAMLET_UNAVAILABLE' and symbol.options then
      return tostring(symbol.options[1])
    end
  end
  return 'no verdict'
end

local function unavailable(task, reason)
  rspamd_logger.infox(task, 'hamlet gave no verdict: %s', reason)
  task:insert_result(UNAVAILABLE, 1.0, reason)
end

local function check(task)
  local content = task:get_content()
  if not content or #content == 0 or #content > settings.max_size then
    return
  end
  local function callback(err, code, body)
    local reason = err
    if not err and code ~= 200 then
      reason = 'status ' .. tostring(code)
    elseif not err then
      reason = answered(task, body)
    end
    if reason then
      unavailable(task, tostring(reason))
    end
  end
  local sent = rspamd_http.request({
    task = task,
    url = settings.url,
    method = 'post',
    mime_type = 'message/rfc822',
    headers = headers(task),
    body = content,
    timeout = settings.timeout,
    keepalive = true,
    callback = callback,
  })
  if not sent then
    unavailable(task, 'no connection')
  end
end

local options = rspamd_config:get_all_opt(N)
if type(options) ~= 'table' then
  lua_util.disable_module(N, 'config')
  return
end
settings = lua_util.override_defaults(settings, options)
UNAVAILABLE = settings.symbol .. '_UNAVAILABLE'

local id = rspamd_config:register_symbol({
  name = settings.symbol,
  type = 'normal',
  callback = check,
  score = 1.0,
  group = N,
  description = 'how far hamlet puts the message beyond the border of spam, in nats',
  augmentations = { string.format('timeout=%f', settings.timeout) },
})
rspamd_config:register_symbol({
  name = UNAVAILABLE,
  type = 'virtual',
  parent = id,
  score = 0.0,
  group = N,
  description = 'hamlet gave no verdict in time',
})
