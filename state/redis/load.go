package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// Load returns the checkpoint that a pointer names, and its version. It verifies
// every hash. If a version is corrupt it logs why and tries the one before; if all
// are, the error wraps [state.ErrCorrupt]. Before the first save it wraps
// [state.ErrNone].
//
// If the head is corrupt, this store's next [Store.Save] replaces it, also with a
// smaller offset.
func (s *Store) Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error) {
	doing := s.doing("load " + which.String() + " of")
	var v version
	first, err := s.newestWhole(ctx, which, func(number int64) (err error) {
		v, err = s.loadVersion(ctx, number)
		return err
	})
	if err != nil {
		return nil, 0, s.explain(doing, err)
	}
	if which == state.Head { // writers load the head
		corrupt := int64(0)
		if v.number != first {
			corrupt = first
		}
		s.trust(v.chunks, corrupt)
	}
	return v.checkpoint, v.number, nil
}

// LoadVersion returns the checkpoint of one version and verifies every hash. In contrast
// to [Store.Load] it takes no other in its place: the error wraps [state.ErrNone] if the
// version is not kept, and [state.ErrCorrupt] if it is not whole.
func (s *Store) LoadVersion(ctx context.Context, number int64) (*state.Checkpoint, error) {
	kept, err := s.node(ctx).Exists(ctx, s.versionKey(number)).Result()
	if err == nil && kept == 0 {
		err = state.ErrNone
	}
	var v version
	if err == nil {
		v, err = s.loadVersion(ctx, number)
	}
	if err != nil {
		return nil, s.explain(s.doing(fmt.Sprintf("load version %d of", number)), err)
	}
	return v.checkpoint, nil
}

// newestWhole has the version read that a pointer names, and those before it until read does
// not say that one is corrupt. It returns the version that the pointer names.
func (s *Store) newestWhole(ctx context.Context, which state.Pointer, read func(number int64) error) (
	first int64, err error) {
	for first, err = s.loadPointer(ctx, which); err == nil; {
		var number int64
		number, err = s.readFrom(ctx, first, read)
		if err == nil && number == first || err != nil && !errors.Is(err, state.ErrCorrupt) {
			return first, err
		}
		// A read that takes longer than the grace may lose its chunks: begin again.
		now, again := s.loadPointer(ctx, which)
		if again != nil || now == first {
			return first, cmp.Or(again, err)
		}
		first, err = now, nil
	}
	return 0, err
}

// loadPointer returns the version that a pointer names, or the newest one if Redis
// lost the pointer.
func (s *Store) loadPointer(ctx context.Context, which state.Pointer) (int64, error) {
	first, err := s.pointer(ctx, which)
	if !errors.Is(err, state.ErrNone) {
		return first, err
	}
	newest, err := s.node(ctx).ZRangeArgs(ctx, s.newestVersions(0)).Result()
	if otherType(err) {
		return 0, fmt.Errorf("%w: %s is no sorted set: delete it; a running learner's next save makes it again",
			state.ErrCorrupt, s.key("versions"))
	}
	if err != nil {
		return 0, err
	}
	if len(newest) == 0 {
		return 0, state.ErrNone
	}
	s.cfg.Log.Warn("redis lost a pointer: taking the newest version instead; is it evicting keys?",
		"model", s.cfg.Model, "pointer", which.String(), "version", newest[0])
	return parseVersion(newest[0])
}

// newestVersions returns a query for the kept versions, newest first, up to index stop
// (−1: all).
func (s *Store) newestVersions(stop int) redis.ZRangeArgs {
	return redis.ZRangeArgs{Key: s.key("versions"), Start: 0, Stop: stop, Rev: true}
}

// A version is a checkpoint as it was read.
type version struct {
	number     int64
	checkpoint *state.Checkpoint
	chunks     []chunkName
}

// readFrom reads the newest whole version that is not newer than first, and returns its number.
func (s *Store) readFrom(ctx context.Context, first int64, read func(number int64) error) (int64, error) {
	err := read(first)
	if err == nil || !errors.Is(err, state.ErrCorrupt) {
		return first, err
	}
	kept, listErr := s.node(ctx).ZRangeArgs(ctx, s.newestVersions(-1)).Result()
	if listErr != nil {
		return 0, listErr
	}
	bad := first
	for _, member := range kept {
		number, parseErr := parseVersion(member)
		if parseErr != nil {
			return 0, parseErr
		}
		if number >= first {
			continue
		}
		s.cfg.Log.Warn("a version is not whole: trying the one before", "model", s.cfg.Model,
			"version", bad, "before", number, "error", err)
		if err = read(number); err == nil || !errors.Is(err, state.ErrCorrupt) {
			return number, err
		}
		bad = number
	}
	// A running learner would overwrite a backup.
	return 0, fmt.Errorf("no version is whole, the last tried was %d: %w; "+
		"with the learners stopped put a backup of redis back, or, to have the log learnt again, delete its keys %s "+
		"and %s", bad, err, s.key("[^p]*"), s.key("pinned"))
}

// Manifest returns the manifest of the version that a pointer names, and its number: what is
// saved, without the model's bytes, in two round trips. Where a manifest is corrupt it takes
// that of the version before, as [Store.Load] does, and does not look at the model's bytes.
// Before the first save the error wraps [state.ErrNone].
func (s *Store) Manifest(ctx context.Context, which state.Pointer) (m *state.Manifest, number int64, err error) {
	_, err = s.newestWhole(ctx, which, func(n int64) (err error) {
		m, err = s.manifest(ctx, n)
		number = n
		return err
	})
	if err != nil {
		return nil, 0, s.explain(s.doing("read the manifest of "+which.String()+" of"), err)
	}
	return m, number, nil
}

func (s *Store) manifest(ctx context.Context, number int64) (*state.Manifest, error) {
	fields, err := s.node(ctx).HMGet(ctx, s.versionKey(number), "manifest", "writer").Result()
	if err != nil && !otherType(err) {
		return nil, err
	}
	var m state.Manifest
	if len(fields) == 0 || fields[0] == nil {
		return nil, fmt.Errorf("%w: version %d has no manifest", state.ErrCorrupt, number)
	}
	if err := m.UnmarshalBinary([]byte(fields[0].(string))); err != nil {
		return nil, fmt.Errorf("version %d: %w", number, err)
	}
	m.Writer, _ = fields[1].(string)
	return &m, nil
}

// loadVersion fetches and verifies one version.
func (s *Store) loadVersion(ctx context.Context, number int64) (version, error) {
	m, err := s.manifest(ctx, number)
	if err != nil {
		return version{}, err
	}
	data, err := s.fetch(ctx, m.Chunks)
	if err != nil {
		return version{}, err
	}
	c, err := state.Join(m, data)
	if err != nil {
		return version{}, fmt.Errorf("version %d: %w", number, err)
	}
	return version{number: number, checkpoint: c, chunks: m.Chunks}, nil
}

// fetch returns chunks in order, nil for one that Redis lacks. It reads a few at a
// time, because one time limit covers a whole pipeline.
func (s *Store) fetch(ctx context.Context, names []chunkName) ([][]byte, error) {
	data := make([][]byte, 0, len(names))
	for len(names) > 0 {
		window := names[:min(s.reading.window(), len(names))]
		names = names[len(window):]
		replies := make([]*redis.StringCmd, len(window))
		err := s.transfer(ctx, &s.reading, len(window)*state.ChunkSize, func(pipe redis.Pipeliner) {
			for i, name := range window {
				replies[i] = pipe.Get(ctx, s.chunkKey(name))
			}
		})
		if err != nil {
			return nil, err
		}
		for _, reply := range replies {
			chunk, err := reply.Bytes()
			switch {
			case errors.Is(err, redis.Nil), otherType(err):
				chunk = nil
			case err != nil:
				return nil, err
			}
			data = append(data, chunk)
		}
	}
	return data, nil
}

func parseVersion(member string) (int64, error) {
	number, err := strconv.ParseInt(member, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: a version is called %q", state.ErrCorrupt, member)
	}
	return number, nil
}
