package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// A VersionInfo describes one kept version of a partition's model.
type VersionInfo struct {
	Version int64
	Epoch   int64
	Events  uint64    // the model's event count
	Next    int64     // next offset of the log
	Order   []byte    // of a model of several partitions, as in its checkpoint
	Saved   time.Time // UTC
	SHA256  [32]byte  // of the model
	Bytes   int64     // length of the model

	Numerics string // version of the mathematics that made the model
	Config   []byte // the model's configuration as canonical JSON

	Pinned bool // an operator pinned it
	Head   bool // it is the newest
	Served bool // scorers answer from it

	Replaced bool // another model took its place: it is kept for 30 days
}

// Versions returns a partition's kept versions, newest first. It logs and leaves out a
// version whose manifest cannot be read. Before the first save the error wraps
// [state.ErrNone].
func (s *Store) Versions(ctx context.Context, partition int) ([]VersionInfo, error) {
	doing := s.doing("list the versions of", partition)
	pipe := s.node(ctx).Pipeline()
	list := pipe.ZRangeArgs(ctx, s.newestVersions(partition, -1))
	head := pipe.Get(ctx, s.key(partition, "head"))
	served := pipe.Get(ctx, s.key(partition, "served"))
	pinned := pipe.Get(ctx, s.key(partition, "pinned"))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.explain(doing, err)
	}
	if len(list.Val()) == 0 {
		return nil, s.explain(doing, state.ErrNone)
	}

	pipe = s.node(ctx).Pipeline()
	manifests := make([]*redis.StringCmd, len(list.Val()))
	replaced := make([]*redis.StringCmd, len(list.Val()))
	for i, version := range list.Val() {
		manifests[i] = pipe.HGet(ctx, s.key(partition, "version:"+version), "manifest")
		replaced[i] = pipe.HGet(ctx, s.key(partition, "version:"+version), "replaced")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.explain(doing, err)
	}
	infos := make([]VersionInfo, 0, len(manifests))
	for i, version := range list.Val() {
		number, err := parseVersion(version)
		var m state.Manifest
		if err == nil {
			var b []byte
			if b, err = manifests[i].Bytes(); err == nil {
				err = m.UnmarshalBinary(b)
			}
		}
		if err != nil {
			s.cfg.Log.Warn("a version cannot be read", "model", s.cfg.Model, "partition", partition,
				"version", version, "error", err)
			continue
		}
		infos = append(infos, VersionInfo{
			Version: number, Epoch: m.Epoch, Events: m.Events, Next: m.Position.Next, Order: m.Order, Saved: m.Saved, SHA256: m.Model,
			Bytes: m.Length, Numerics: m.Numerics, Config: m.Config,
			Pinned: pinned.Val() == version, Head: head.Val() == version, Served: served.Val() == version,
			Replaced: replaced[i].Val() != "",
		})
	}
	return infos, nil
}

// pin pins one version a partition, or nothing if one of them is not kept. KEYS are two a
// partition: pinned and served. ARGV are three: the sorted set of versions, the version's
// key and its number. Only KEYS are written, so that an operator's user needs the right to
// write no other key.
var pin = redis.NewScript(`
for i = 1, #KEYS / 2 do
  local versions, key, number = ARGV[3*i-2], ARGV[3*i-1], ARGV[3*i]
  if not redis.call('ZSCORE', versions, number) or redis.call('EXISTS', key) == 0 then return i end
end
for i = 1, #KEYS / 2 do
  redis.call('SET', KEYS[2*i-1], ARGV[3*i])
  redis.call('SET', KEYS[2*i], ARGV[3*i])
end
return 0`)

// Pin points served at a version, and keeps that version, until [Store.Unpin]. If the
// version is no longer kept, the error wraps [state.ErrNone].
func (s *Store) Pin(ctx context.Context, partition int, version int64) error {
	return s.PinAll(ctx, map[int]int64{partition: version})
}

// PinAll pins one version of each partition that versions names, or nothing: if one of them
// is no longer kept, the error wraps [state.ErrNone].
func (s *Store) PinAll(ctx context.Context, versions map[int]int64) error {
	partitions := slices.Sorted(maps.Keys(versions))
	var keys []string
	var args []any
	for _, p := range partitions {
		keys = append(keys, s.key(p, "pinned"), s.key(p, "served"))
		args = append(args, s.key(p, "versions"), s.versionKey(p, versions[p]), versions[p])
	}
	missing, err := pin.Run(ctx, s.node(ctx), keys, args...).Int()
	if err != nil {
		return s.explain("pin versions of model "+s.cfg.Model, err)
	}
	if missing > 0 {
		p := partitions[missing-1]
		return fmt.Errorf("%s: %w with this number: choose one that is kept",
			s.doing(fmt.Sprintf("pin version %d of", versions[p]), p), state.ErrNone)
	}
	return nil
}

// unpin has two KEYS a partition, pinned and served, and one of ARGV: head, which it reads.
var unpin = redis.NewScript(`
for i = 1, #ARGV do
  redis.call('DEL', KEYS[2*i-1])
  local head = redis.call('GET', ARGV[i])
  if head then redis.call('SET', KEYS[2*i], head) end
end
return 1`)

// Unpin moves served to the head again. Without a pin it does nothing.
func (s *Store) Unpin(ctx context.Context, partition int) error {
	return s.UnpinAll(ctx, partition)
}

// UnpinAll is Unpin of several partitions at once.
func (s *Store) UnpinAll(ctx context.Context, partitions ...int) error {
	var keys []string
	var heads []any
	for _, p := range partitions {
		keys = append(keys, s.key(p, "pinned"), s.key(p, "served"))
		heads = append(heads, s.key(p, "head"))
	}
	return s.explain(fmt.Sprintf("unpin partitions %v of model %s", partitions, s.cfg.Model), unpin.Run(ctx, s.node(ctx), keys, heads...).Err())
}

// Pinned returns the version that an operator pinned, 0 if there is none. It may be one that
// is no longer kept: then the pin is lost, and the head is served.
func (s *Store) Pinned(ctx context.Context, partition int) (int64, error) {
	text, err := s.node(ctx).Get(ctx, s.key(partition, "pinned")).Result()
	if err != nil && !errors.Is(err, redis.Nil) && !otherType(err) {
		return 0, s.explain(s.doing("read the pin of", partition), err)
	}
	return parsePin(text), nil
}
