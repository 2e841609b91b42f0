-- Makes an uploaded checkpoint a version of one partition and flips the head to
-- it, or changes nothing and says why not. The reply is a list of strings:
--
--   saved VERSION       done, now or by an earlier try whose reply was lost
--   stale epoch E       another writer took the partition: the epoch is E
--   stale offset O      the head is further in the log: its next offset is O
--   missing I…          chunks that Redis lacks, by their place among names, from 0
--
-- Its cost is in the chunks of the versions kept and trimmed, never in the bytes of a
-- model. Offsets are compared as decimal strings, because Lua's numbers are exact only
-- below 2^53.

local epochKey, headKey, servedKey, pinnedKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lastKey, versionsKey, leaseKey, partitionsKey = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local prefix, partition = ARGV[1], ARGV[2]
local epoch, nextOffset, events, sha256 = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local identity, manifest = ARGV[7], ARGV[8]
local day, keep, daily, grace = ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local distrusted = ARGV[13] -- a head whose bytes the writer found corrupt, or ''
local writer = ARGV[14]     -- who holds the epoch
local names = 15            -- the chunks' names, each once, from here on

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
local at = {false, false}
if head and head ~= distrusted then
  at = read('HMGET', versionKey(head), 'next', 'identity') or at
  if at[1] and before(nextOffset, at[1]) then return {'stale', 'offset', at[1]} end
end

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
newest = newest[1]
local version = head
if at[2] ~= identity then
  version = math.max(number(read('GET', lastKey)), number(head), number(newest), number(pinned)) + 1
  version = string.format('%.0f', version)
end
local list = {}
for i = names, #ARGV do
  redis.call('PERSIST', chunkKey(ARGV[i]))
  list[#list + 1] = ARGV[i]
end
if at[2] ~= identity then redis.call('DEL', versionKey(version)) end
redis.call('HSET', versionKey(version), 'identity', identity, 'epoch', epoch, 'next', nextOffset, 'events', events,
  'sha256', sha256, 'chunks', table.concat(list, ' '), 'writer', writer)
if at[2] ~= identity or redis.call('HEXISTS', versionKey(version), 'manifest') == 0 then
  redis.call('HSET', versionKey(version), 'manifest', manifest, 'day', day)
end
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
local listed = redis.pcall('SADD', partitionsKey, partition)
if type(listed) == 'table' then -- another type, or what the next try meets as well
  if string.find(listed.err, 'WRONGTYPE', 1, true) then redis.call('DEL', partitionsKey) end
  redis.call('SADD', partitionsKey, partition)
end

-- The last versions stay, of the older ones the first of each day, those that another model
-- replaced in the last 30 days, and the pinned one. Walking up from the oldest makes the first of a day the same one
-- every time.
local trimmed = {}
if head and head == distrusted and head ~= pinned and head ~= version then trimmed[1] = head end
local dayTaken = {}
for _, v in ipairs(redis.call('ZRANGE', versionsKey, 0, -tonumber(keep) - 1)) do
  local fields = read('HMGET', versionKey(v), 'day', 'replaced') or {false, false}
  local d, replaced = fields[1], fields[2]
  if d and not dayTaken[d] and number(d) > tonumber(day) - tonumber(daily) then
    dayTaken[d] = true
  elseif v ~= pinned and v ~= version and not (replaced and number(d) > tonumber(day) - 30) then
    trimmed[#trimmed + 1] = v
  end
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
