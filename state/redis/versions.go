package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// Versions returns the kept versions, newest first, and behind them the lost ones. It logs and leaves out a
// version whose manifest cannot be read. Before the first save the error wraps
// [state.ErrNone].
func (s *Store) Versions(ctx context.Context) ([]state.VersionInfo, error) {
	doing := s.doing("list the versions of")
	pipe := s.node(ctx).Pipeline()
	list := pipe.ZRangeArgs(ctx, s.newestVersions(-1))
	head := pipe.Get(ctx, s.key("head"))
	served := pipe.Get(ctx, s.key("served"))
	pinned := pipe.Get(ctx, s.key("pinned"))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.explain(doing, err)
	}
	if len(list.Val()) == 0 {
		return nil, s.explain(doing, state.ErrNone)
	}

	pipe = s.node(ctx).Pipeline()
	manifests := make([]*redis.StringCmd, len(list.Val()))
	replaced, lost := make([]*redis.StringCmd, len(list.Val())), make([]*redis.StringCmd, len(list.Val()))
	for i, version := range list.Val() {
		manifests[i] = pipe.HGet(ctx, s.key("version:"+version), "manifest")
		replaced[i] = pipe.HGet(ctx, s.key("version:"+version), "replaced")
		lost[i] = pipe.HGet(ctx, s.key("version:"+version), "lost")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.explain(doing, err)
	}
	infos := make([]state.VersionInfo, 0, len(manifests))
	for i, version := range list.Val() {
		number, err := parseVersion(version)
		var m state.Manifest
		if err == nil {
			var b []byte
			if b, err = manifests[i].Bytes(); err == nil {
				err = m.UnmarshalBinary(b)
			}
		}
		if errors.Is(err, state.ErrPartitions) {
			return nil, s.explain(doing, err)
		}
		if err != nil {
			s.cfg.Log.Warn("a version cannot be read", "model", s.cfg.Model,
				"version", version, "error", err)
			continue
		}
		infos = append(infos, state.VersionInfo{
			Version: number, Epoch: m.Epoch, Events: m.Events, Position: m.Position, Saved: m.Saved, SHA256: m.Model,
			Bytes: m.Length, Numerics: m.Numerics, Config: m.Config,
			Pinned: pinned.Val() == version, Head: head.Val() == version, Served: served.Val() == version,
			Replaced: replaced[i].Val() != "", Lost: lost[i].Val() != "",
		})
	}
	return infos, nil
}

// pin has pinned and served as KEYS. ARGV are the sorted set of versions, the version's key
// and its number. Only KEYS are written, so that an operator's user needs the right to write
// no other key.
var pin = redis.NewScript(`
if not redis.call('ZSCORE', ARGV[1], ARGV[3]) or redis.call('EXISTS', ARGV[2]) == 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[3])
redis.call('SET', KEYS[2], ARGV[3])
return 1`)

// Pin points served at a version, and keeps that version, until [Store.Unpin]. If the
// version is no longer kept, the error wraps [state.ErrNone].
func (s *Store) Pin(ctx context.Context, version int64) error {
	doing := s.doing(fmt.Sprintf("pin version %d of", version))
	kept, err := pin.Run(ctx, s.node(ctx), []string{s.key("pinned"), s.key("served")},
		s.key("versions"), s.versionKey(version), version).Int()
	if err == nil && kept == 0 {
		return fmt.Errorf("%s: %w with this number: choose one that is kept", doing, state.ErrNone)
	}
	return s.explain(doing, err)
}

// unpin has pinned and served as KEYS, and head, which it reads, as ARGV.
var unpin = redis.NewScript(`
redis.call('DEL', KEYS[1])
local head = redis.call('GET', ARGV[1])
if head then redis.call('SET', KEYS[2], head) end
return 1`)

// Unpin moves served to the head again. Without a pin it does nothing.
func (s *Store) Unpin(ctx context.Context) error {
	err := unpin.Run(ctx, s.node(ctx), []string{s.key("pinned"), s.key("served")}, s.key("head")).Err()
	return s.explain(s.doing("unpin"), err)
}

// Pinned returns the version that an operator pinned, 0 if there is none. It may be one that
// is no longer kept: then the pin is lost, and the head is served.
func (s *Store) Pinned(ctx context.Context) (int64, error) {
	text, err := s.node(ctx).Get(ctx, s.key("pinned")).Result()
	if err != nil && !errors.Is(err, redis.Nil) && !otherType(err) {
		return 0, s.explain(s.doing("read the pin of"), err)
	}
	return parsePin(text), nil
}
