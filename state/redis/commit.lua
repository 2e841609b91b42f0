-- Makes an uploaded checkpoint a version of the model and flips the head to it, or changes
-- nothing and says why not. Where the head has the same bytes, the head is rewritten in place:
-- a version is other bytes, not another save. The reply is a list of strings:
--
--   saved VERSION       done, now or by an earlier try whose reply was lost
--   stale epoch E       another writer took the model: the epoch is E
--   stale offset O      the head is further in the log: its next offset is O
--   missing I…          chunks that Redis lacks, by their place among names, from 0
--
-- Its cost is in the number of versions kept, and in the chunks of those trimmed and left
-- where one is trimmed. It is never in the bytes of a model. Offsets are compared as decimal strings, because Lua's numbers are exact only
-- below 2^53.

local epochKey, headKey, servedKey, pinnedKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lastKey, versionsKey, leaseKey, partitionsKey = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local prefix = ARGV[1]
local epoch, nextOffset, events, sha256 = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local identity, manifest = ARGV[6], ARGV[7]
local day, keep, daily, grace = ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local distrusted = ARGV[12] -- a head whose bytes the writer found corrupt, or ''
local writer = ARGV[13]     -- who holds the epoch
local names = 14            -- the chunks' names, each once, from here on

local function before(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local function versionKey(v) return prefix .. 'version:' .. v end
local function chunkKey(name) return prefix .. 'chunk:' .. name end

-- number returns a counter's or version's value, 0 for what is none.
local function number(text)
  if type(text) ~= 'string' or not string.match(text, '^%d+$') or #text > 15 then return 0 end
  return tonumber(text)
end

-- read runs a command that reads, and returns false where the key is of another type. Any
-- other error ends the script: a key that Redis Cluster has just moved is not lost.
local function read(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return redis.call(...) end -- it fails again
  return false
end

local current = read('GET', epochKey)
if current ~= epoch then return {'stale', 'epoch', current or '0'} end
-- A fail-over of Redis can give one epoch to two writers. The lease says to whom it gave it last.
local of, _, holder = string.match(read('GET', leaseKey) or '', '^(%d+) (%d+) (%S+)$')
if of == epoch and writer ~= '' and holder ~= writer then return {'stale', 'epoch', current} end

local head = read('GET', headKey)
local at = {} -- of the head: next, identity, sha256, day
if head and head ~= distrusted then
  at = read('HMGET', versionKey(head), 'next', 'identity', 'sha256', 'day') or at
  if at[1] and before(nextOffset, at[1]) then return {'stale', 'offset', at[1]} end
end
local inPlace = at[3] == sha256

local missing = {'missing'}
for i = names, #ARGV do
  if redis.call('EXISTS', chunkKey(ARGV[i])) == 0 then
    missing[#missing + 1] = tostring(i - names)
  end
end
if #missing > 1 then return missing end

-- What is written below does not rely on what Redis holds: any of these keys may have
-- been lost or set back. A version's number is above all that are known. From here on
-- nothing can fail but Redis itself. The head comes after what it names, so that even a
-- script cut short leaves a whole version behind it.
local pinned = read('GET', pinnedKey)
local newest = read('ZREVRANGE', versionsKey, 0, 0)
if not newest then -- another type
  redis.call('DEL', versionsKey)
  newest = {}
end
local lowest = redis.call('ZRANGE', versionsKey, 0, 0) -- the newest lost one, if there is any
local version = head
if not inPlace then
  version = 1 + math.max(number(read('GET', lastKey)), number(head), number(newest[1]), number(lowest[1]), number(pinned))
  version = string.format('%.0f', version)
  redis.call('DEL', versionKey(version))
end
local list = {}
for i = names, #ARGV do
  redis.call('PERSIST', chunkKey(ARGV[i]))
  list[#list + 1] = ARGV[i]
end
-- One command writes all of a version: a reader sees it before or after. A save again leaves
-- the manifest as it was. The day is that of the first save of these bytes.
local fields = {'identity', identity, 'epoch', epoch, 'next', nextOffset, 'events', events, 'sha256', sha256,
  'chunks', table.concat(list, ' '), 'writer', writer}
local function write(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
if at[2] ~= identity or redis.call('HEXISTS', versionKey(version), 'manifest') == 0 then write('manifest', manifest) end
if not inPlace or number(at[4]) == 0 then write('day', day) end
redis.call('HSET', versionKey(version), unpack(fields))
redis.call('PERSIST', versionKey(version))
redis.call('ZADD', versionsKey, version, version)
redis.call('SET', lastKey, string.format('%.0f', math.max(number(read('GET', lastKey)), number(version))))
redis.call('SET', headKey, version)
if pinned and redis.call('EXISTS', versionKey(pinned)) == 0 then
  -- It is gone: serve the head. The pin stays, so that all see that it is lost.
  if number(pinned) == 0 then redis.call('DEL', pinnedKey) end
  pinned = false
end
redis.call('SET', servedKey, pinned or version)
local listed = redis.pcall('SADD', partitionsKey, '0')
if type(listed) == 'table' then -- another type, or what the next try meets as well
  if string.find(listed.err, 'WRONGTYPE', 1, true) then redis.call('DEL', partitionsKey) end
  redis.call('SADD', partitionsKey, '0')
end

-- What stays, whatever the clock says:
--
--   * the last `keep` distinct versions, by their bytes
--   * of older ones the first of each day, of the last `daily` days that have one
--   * one that another model replaced, and one that the log has lost, until the model was saved
--     on 30 further days, of the lost the last 30
--   * the pinned one, and this one
--
-- The days are in the order of the versions. A clock that runs ahead for a while makes one more
-- day, and a save in the year 2031 is no reason to drop what is 30 days older than that.
local marked, mostLost = 30, 30
local order = redis.call('ZREVRANGE', versionsKey, 0, -1) -- newest first; lost ones last, the newest at the end
local info, bytes, stays, recent = {}, {}, {}, 0
for _, v in ipairs(order) do
  info[v] = read('HMGET', versionKey(v), 'sha256', 'day', 'replaced', 'lost', 'counted', 'waited') or {}
  local sha, lost = info[v][1], info[v][4]
  if sha and not lost and v ~= distrusted and not bytes[sha] and recent < tonumber(keep) then
    bytes[sha], stays[v], recent = true, true, recent + 1
  end
end
local firsts, days, lostOnes = {}, {}, 0
for i = #order, 1, -1 do -- from the oldest: the first of a day is the same one every time
  local v = order[i]
  local sha, d, replaced, lost, counted, waited = unpack(info[v], 1, 6)
  if replaced or lost then
    waited = number(waited)
    if counted ~= day then
      waited = waited + 1
      redis.call('HSET', versionKey(v), 'counted', day, 'waited', waited)
    end
    if lost then lostOnes = lostOnes + 1 end
    if waited <= marked and (replaced or lostOnes <= mostLost) then stays[v] = true end
  end
  if sha and not lost and v ~= distrusted and number(d) > 0 and not bytes[sha] and not days[d] then
    bytes[sha], days[d] = true, true
    firsts[#firsts + 1] = v
  end
end
for i = math.max(1, #firsts - tonumber(daily) + 1), #firsts do stays[firsts[i]] = true end
local trimmed = {}
for _, v in ipairs(order) do
  if (not stays[v] or v == distrusted) and v ~= pinned and v ~= version then trimmed[#trimmed + 1] = v end
end
if #trimmed == 0 then return {'saved', version} end

-- The chunks of a trimmed version that no kept one names, and its manifest, stay for
-- the grace, because somebody may be reading them.
for _, v in ipairs(trimmed) do redis.call('ZREM', versionsKey, v) end
local used = {}
for _, v in ipairs(redis.call('ZRANGE', versionsKey, 0, -1)) do
  for name in string.gmatch(read('HGET', versionKey(v), 'chunks') or '', '%x+') do used[name] = true end
end
for _, v in ipairs(trimmed) do
  for name in string.gmatch(read('HGET', versionKey(v), 'chunks') or '', '%x+') do
    if not used[name] then redis.call('PEXPIRE', chunkKey(name), grace) end
  end
  redis.call('PEXPIRE', versionKey(v), grace)
end
return {'saved', version}
