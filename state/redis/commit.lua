-- Makes an uploaded checkpoint a version of one partition and flips the head to
-- it, or changes nothing and says why not. The reply is a list of strings:
--
--   saved VERSION       done, now or by an earlier try whose reply was lost
--   stale epoch E       another writer took the partition: the epoch is E
--   stale offset O      the head is further in the log: its next offset is O
--   missing I…          chunks that Redis lacks, by their place among names, from 0
--
-- Its cost is in the chunks of the new version and of those trimmed, and in the
-- number of versions kept, never in the bytes of a model. Offsets are compared
-- as decimal strings, because Lua's numbers are exact only below 2^53.

local epochKey, headKey, servedKey, pinnedKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lastKey, versionsKey, refsKey, partitionsKey = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local prefix, partition = ARGV[1], ARGV[2]
local epoch, nextOffset, events, sha256 = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local identity, manifest = ARGV[7], ARGV[8]
local day, keep, daily, grace = ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local distrusted = ARGV[13] -- a head whose bytes the writer found corrupt, or ''
local names = 14            -- the chunks' names, each once, from here on

local function before(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local function versionKey(v) return prefix .. 'version:' .. v end
local function chunkKey(name) return prefix .. 'chunk:' .. name end

-- trim takes a version out of the list. Its chunks that no other version names,
-- and its manifest, stay for the grace, because somebody may be reading them.
local function trim(v)
  local list = redis.call('HGET', versionKey(v), 'chunks')
  for name in string.gmatch(list or '', '%x+') do
    if redis.call('HINCRBY', refsKey, name, -1) <= 0 then
      redis.call('HDEL', refsKey, name)
      redis.call('PEXPIRE', chunkKey(name), grace)
    end
  end
  redis.call('PEXPIRE', versionKey(v), grace)
  redis.call('ZREM', versionsKey, v)
end

local current = redis.call('GET', epochKey)
if current ~= epoch then return {'stale', 'epoch', current or '0'} end

local head = redis.call('GET', headKey)
local at = {false, false}
if head and head ~= distrusted then
  at = redis.call('HMGET', versionKey(head), 'next', 'identity')
  if at[1] and before(nextOffset, at[1]) then return {'stale', 'offset', at[1]} end
end

local missing = {'missing'}
for i = names, #ARGV do
  if redis.call('EXISTS', chunkKey(ARGV[i])) == 0 then
    missing[#missing + 1] = tostring(i - names)
  end
end
if #missing > 1 then return missing end
if at[2] == identity then
  -- A chunk that had been lost and was uploaded again is to expire, like all that
  -- no commit has made permanent. The list of partitions may have been lost as well.
  for i = names, #ARGV do redis.call('PERSIST', chunkKey(ARGV[i])) end
  redis.call('SADD', partitionsKey, partition)
  return {'saved', head}
end

-- From here on nothing can fail but Redis itself. The head comes after what it
-- names, so that even a script cut short leaves a whole version behind it.
local version = tostring(redis.call('INCR', lastKey))
local list = {}
for i = names, #ARGV do
  redis.call('PERSIST', chunkKey(ARGV[i]))
  redis.call('HINCRBY', refsKey, ARGV[i], 1)
  list[#list + 1] = ARGV[i]
end
redis.call('HSET', versionKey(version), 'manifest', manifest, 'identity', identity, 'epoch', epoch,
  'next', nextOffset, 'events', events, 'sha256', sha256, 'day', day, 'chunks', table.concat(list, ' '))
redis.call('ZADD', versionsKey, version, version)
redis.call('SET', headKey, version)
local pinned = redis.call('GET', pinnedKey)
if not pinned then redis.call('SET', servedKey, version) end
redis.call('SADD', partitionsKey, partition)

if head and head == distrusted and head ~= pinned then trim(head) end

-- The last versions stay, of the older ones the first of each day, and the
-- pinned one. Walking up from the oldest makes the first of a day the same one
-- every time.
local dayTaken = {}
for _, v in ipairs(redis.call('ZRANGE', versionsKey, 0, -tonumber(keep) - 1)) do
  local d = redis.call('HGET', versionKey(v), 'day')
  if d and not dayTaken[d] and tonumber(d) > tonumber(day) - tonumber(daily) then
    dayTaken[d] = true
  elseif v ~= pinned then
    trim(v)
  end
end
return {'saved', version}
