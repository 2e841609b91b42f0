-- Reads or changes the lease of a model. KEYS: epoch, lease, head, refs. ARGV[1] names the
-- operation. The reply is {EPOCH, BEATS, WRITER, SAVED}, or {'stale', EPOCH}.
--
--   read    WATCHER                      SAVED is '1' if an older program has saved since WATCHER read last
--   acquire PREFIX ABOVE WRITER E B W    if epoch and lease are E, B, W: the next epoch, 1 beat
--   seize   PREFIX ABOVE WRITER          the next epoch, 1 beat
--   beat    EPOCH WRITER                 if the epoch is theirs, and not free: one beat more
--   release EPOCH WRITER                 if the epoch is theirs: no beats
--
-- The key lease holds "EPOCH BEATS WRITER". A lease of another epoch than that of the key epoch
-- counts as none: a program before 0.2.0 has taken the epoch, and never beats. Its saves delete
-- the key refs. So whoever watches it notes its own word there, and sees whether it is gone.

local epochKey, leaseKey, headKey, refsKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- number returns a counter's value, 0 for what is none.
local function number(text)
  if type(text) ~= 'string' or not string.match(text, '^%d+$') or #text > 15 then return 0 end
  return tonumber(text)
end

-- read returns false where the key is of another type. Any other error ends the script.
local function read(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return redis.call(...) end -- it fails again
  return false
end

local function whole(n) return string.format('%.0f', n) end

-- current returns epoch, beats and writer as they are.
local function current()
  local epoch = number(read('GET', epochKey))
  local of, beats, writer = string.match(read('GET', leaseKey) or '', '^(%d+) (%d+) (%S+)$')
  if of and number(of) == epoch and epoch > 0 then return epoch, number(beats), writer end
  if epoch == 0 then return 0, 0, '' end
  return epoch, -1, ''
end

local function write(epoch, beats, writer)
  redis.call('SET', leaseKey, whole(epoch) .. ' ' .. whole(beats) .. ' ' .. writer)
  return {whole(epoch), whole(beats), writer, '0'}
end

-- next makes the next epoch, above the head's and above one that the caller has held: Redis may
-- have lost the last ones in a fail-over.
local function next(epoch, prefix, above, writer)
  local head = read('GET', headKey)
  local saved = head and read('HGET', prefix .. 'version:' .. head, 'epoch')
  epoch = math.max(epoch, number(saved), number(above)) + 1
  redis.call('SET', epochKey, whole(epoch))
  return write(epoch, 1, writer)
end

local epoch, beats, writer = current()
local operation = ARGV[1]
if operation == 'read' then
  if beats >= 0 then return {whole(epoch), whole(beats), writer, '0'} end
  local watchers = read('GET', refsKey) or ''
  if string.find(' ' .. watchers .. ' ', ' ' .. ARGV[2] .. ' ', 1, true) then
    return {whole(epoch), '-1', '', '0'}
  end
  if #watchers > 1000 then watchers = '' end -- of processes that have ended
  redis.call('SET', refsKey, watchers .. ' ' .. ARGV[2])
  return {whole(epoch), '-1', '', '1'}
elseif operation == 'acquire' then
  if whole(epoch) ~= ARGV[5] or whole(beats) ~= ARGV[6] or writer ~= ARGV[7] then return {'stale', whole(epoch)} end
  return next(epoch, ARGV[2], ARGV[3], ARGV[4])
elseif operation == 'seize' then
  return next(epoch, ARGV[2], ARGV[3], ARGV[4])
end
if whole(epoch) ~= ARGV[2] or beats >= 0 and writer ~= ARGV[3] then return {'stale', whole(epoch)} end
if operation == 'beat' and beats == 0 then return {'stale', whole(epoch)} end -- it was released after the beat was sent
if operation == 'beat' then return write(epoch, math.max(beats, 0) + 1, ARGV[3]) end
return write(epoch, 0, ARGV[3])
