package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// stepBack points the head, and served without a pin, at an older kept version, and marks those
// above it as lost. KEYS are epoch, lease, head, served, pinned, last and versions. ARGV are the
// key of a version without its number, the caller's epoch and writer, and the version. The reply
// is {'done'}, {'none'}, or {'stale', EPOCH}.
//
// The set versions is sorted by number. A lost one gets the negative number. So the newest of the
// set is never a lost one, for programs before 0.2.0 too, and a version that is pinned is still
// in it.
var stepBack = redis.NewScript(`
local epochKey, leaseKey, headKey, servedKey, pinnedKey, lastKey, versionsKey = unpack(KEYS)
local prefix, epoch, writer, to = unpack(ARGV)
local function number(text)
  if type(text) ~= 'string' or not string.match(text, '^%d+$') or #text > 15 then return 0 end
  return tonumber(text)
end
local function read(...) -- false: the key is of another type
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return redis.call(...) end -- it fails again
  return false
end

local current = read('GET', epochKey)
if current ~= epoch then return {'stale', current or '0'} end
local of, _, holder = string.match(read('GET', leaseKey) or '', '^(%d+) (%d+) (%S+)$')
if of == epoch and writer ~= '' and holder ~= writer then return {'stale', current} end
local score = read('ZSCORE', versionsKey, to)
if not score or tonumber(score) < 0 or redis.call('EXISTS', prefix .. to) == 0 then return {'none'} end

local last = math.max(number(read('GET', lastKey)), number(read('GET', headKey)))
for _, v in ipairs(redis.call('ZREVRANGE', versionsKey, 0, -1)) do -- those that are lost come last
  if number(v) > number(to) then
    redis.call('ZADD', versionsKey, '-' .. v, v)
    if redis.call('EXISTS', prefix .. v) == 1 then redis.call('HSET', prefix .. v, 'lost', '1') end
    last = math.max(last, number(v))
  end
end
redis.call('SET', lastKey, string.format('%.0f', last))
redis.call('SET', headKey, to)
local pinned = read('GET', pinnedKey)
if not pinned or redis.call('EXISTS', prefix .. pinned) == 0 then pinned = to end
redis.call('SET', servedKey, pinned)
return {'done'}`)

// StepBack moves the head to an older kept version, because the log has lost what those above it
// have learnt. The next [Store.Save] goes on from that version's offset, under a new number.
// Served follows, unless an operator pinned a version.
//
// The versions above are lost: no reader takes one for the newest, where Redis has lost a
// pointer. They are kept as [Store.MarkReplaced] keeps one, the last 30 of them: an operator can
// still pin one. What they have learnt and the log has not is in them alone.
//
// mine must have the epoch that Redis has, and its writer the lease, else nothing changes and the
// error wraps [state.ErrStale], and [state.ErrLost] too if Redis lost the epoch. If the version
// is not kept, or is lost, the error wraps [state.ErrNone].
func (s *Store) StepBack(ctx context.Context, mine state.Lease, to int64) error {
	doing := s.doing(fmt.Sprintf("step back to version %d of", to))
	keys := []string{"epoch", "lease", "head", "served", "pinned", "last", "versions"}
	for i, name := range keys {
		keys[i] = s.key(name)
	}
	reply, err := stepBack.Run(ctx, s.node(ctx), keys, s.key("version:"), mine.Epoch, mine.Writer, to).StringSlice()
	switch {
	case err != nil:
		return s.explain(doing, err)
	case reply[0] == "none":
		return fmt.Errorf("%s: %w with this number that the log has not lost", doing, state.ErrNone)
	case reply[0] == "stale":
		return stale(doing, reply[1], mine.Epoch)
	}
	return nil
}

// markReplaced has the sorted set of versions and the version's key as KEYS, and its number.
var markReplaced = redis.NewScript(`
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) or redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'replaced', '1')
return 1`)

// MarkReplaced has saves keep a version for 30 days, because another model is to take its
// place. They are days on which the model was saved: a clock that runs ahead drops no version. If
// the version is no longer kept, the error wraps [state.ErrNone].
func (s *Store) MarkReplaced(ctx context.Context, version int64) error {
	doing := s.doing(fmt.Sprintf("keep version %d of", version))
	kept, err := markReplaced.Run(ctx, s.node(ctx), []string{s.key("versions"), s.versionKey(version)}, version).Int()
	if err == nil && kept == 0 {
		err = state.ErrNone
	}
	return s.explain(doing, err)
}
