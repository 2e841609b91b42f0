package redis

import (
	"context"
	"errors"
	"fmt"
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
	Saved   time.Time // UTC
	SHA256  [32]byte  // of the model
	Pinned  bool      // an operator pinned it
	Head    bool      // it is the newest
	Served  bool      // scorers answer from it
}

// Versions returns a partition's kept versions, newest first. It logs and leaves out a
// version whose manifest cannot be read. Before the first save the error wraps
// [state.ErrNone].
func (s *Store) Versions(ctx context.Context, partition int) ([]VersionInfo, error) {
	doing := s.doing("list the versions of", partition)
	pipe := s.client.Pipeline()
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

	pipe = s.client.Pipeline()
	manifests := make([]*redis.StringCmd, len(list.Val()))
	for i, version := range list.Val() {
		manifests[i] = pipe.HGet(ctx, s.key(partition, "version:"+version), "manifest")
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
			Version: number, Epoch: m.Epoch, Events: m.Events, Next: m.Position.Next, Saved: m.Saved, SHA256: m.Model,
			Pinned: pinned.Val() == version, Head: head.Val() == version, Served: served.Val() == version,
		})
	}
	return infos, nil
}

var pin = redis.NewScript(`
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], ARGV[1])
return 1`)

// Pin points served at a version, and keeps that version, until [Store.Unpin]. If the
// version is no longer kept, the error wraps [state.ErrNone].
func (s *Store) Pin(ctx context.Context, partition int, version int64) error {
	doing := s.doing(fmt.Sprintf("pin version %d of", version), partition)
	done, err := pin.Run(ctx, s.client, []string{
		s.key(partition, "versions"), s.key(partition, "pinned"), s.key(partition, "served"),
	}, version).Int()
	if err != nil {
		return s.explain(doing, err)
	}
	if done == 0 {
		return fmt.Errorf("%s: %w with this number: choose one that is kept", doing, state.ErrNone)
	}
	return nil
}

var unpin = redis.NewScript(`
redis.call('DEL', KEYS[1])
local head = redis.call('GET', KEYS[2])
if head then redis.call('SET', KEYS[3], head) end
return 1`)

// Unpin moves served to the head again. Without a pin it does nothing.
func (s *Store) Unpin(ctx context.Context, partition int) error {
	return s.explain(s.doing("unpin", partition), unpin.Run(ctx, s.client, []string{
		s.key(partition, "pinned"), s.key(partition, "head"), s.key(partition, "served"),
	}).Err())
}
