package redis

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

//go:embed commit.lua
var commitSource string

var commit = redis.NewScript(commitSource)

// sum returns the SHA-1 of a chunk in Redis, "" if there is none. It is what
// Redis can compute; it guards against decay, not against an attacker, who could
// write manifests as well. 1 MiB takes 2 ms.
const sum = `
local chunk = redis.call('GET', KEYS[1])
if not chunk then return '' end
return redis.sha1hex(chunk)`

const (
	pipelined   = 8 // chunks in one pipeline: 8 MiB in flight
	commitTries = 5 // rounds of uploading what went missing meanwhile

	// trusted is the number of saves after which chunks are compared that were whole
	// once: one that is altered in Redis while its writer lives, and that never
	// changes, would be part of every version to come. At a save in 3 s that is
	// once a minute, for 2 ms of Redis' time a chunk.
	trusted = 20
)

// Save writes a checkpoint and flips the partition's head to it. It uploads only
// the chunks that Redis lacks. The checkpoint's epoch must be the one that
// [Store.Take] returned last to anybody, and its offset must not be before the
// head's; otherwise nothing changes and the error wraps [state.ErrStale], and
// [state.ErrLost] if Redis lost the epoch. Saving what is the head already, as one
// does whose first try had no reply, returns the head; what Redis lost of it, or
// its place among [Store.Partitions], is there again. A zero Saved means now.
//
// Everything is sent in commands of at most 1 MiB, so that Redis answers others
// in between.
func (s *Store) Save(ctx context.Context, partition int, c *state.Checkpoint) (version int64, err error) {
	doing := fmt.Sprintf("save partition %d of model %s", partition, s.cfg.Model)
	m, chunks := state.Split(c)
	if m.Saved.IsZero() {
		m.Saved = time.Now()
	}
	args, err := s.commitArgs(partition, m)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	unique := distinct(chunks)
	for i := range unique {
		args = append(args, hex.EncodeToString(unique[i].Name[:]))
	}
	if err := s.mend(ctx, partition, unique); err != nil {
		return 0, s.explain(doing, err)
	}
	for range commitTries {
		reply, err := commit.Run(ctx, s.client, s.commitKeys(partition), args...).StringSlice()
		if err != nil {
			return 0, s.explain(doing, err)
		}
		switch reply[0] {
		case "saved":
			s.settle(partition, m.Chunks)
			return strconv.ParseInt(reply[1], 10, 64)
		case "stale":
			if reply[1] == "epoch" && wentBack(reply[2], c.Epoch) {
				return 0, fmt.Errorf("%s: %w: %w: the epoch is %s, this writer took it with %d: take the partition anew",
					doing, state.ErrStale, state.ErrLost, reply[2], c.Epoch)
			}
			if reply[1] == "epoch" {
				return 0, fmt.Errorf("%s: %w: the epoch is %s, this writer took it with %d: reload or stop",
					doing, state.ErrStale, reply[2], c.Epoch)
			}
			return 0, fmt.Errorf("%s: %w: the head's next offset is %s, this one's %d: reload",
				doing, state.ErrStale, reply[2], c.Position.Next)
		}
		missing, err := pick(unique, reply[1:])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", doing, err)
		}
		if err := s.upload(ctx, partition, missing); err != nil {
			return 0, s.explain(doing, err)
		}
	}
	return 0, fmt.Errorf("%s: redis at %s loses chunks as fast as they come: set its maxmemory-policy "+
		"to noeviction and give it memory, or, if it is far away, give a longer grace than %v", doing, s.cfg.Addr, s.cfg.Grace)
}

// wentBack reports whether a partition's epoch, which only grows, is before one
// that somebody holds.
func wentBack(now string, held int64) bool {
	epoch, err := strconv.ParseInt(now, 10, 64)
	return err == nil && epoch < held
}

func (s *Store) commitKeys(partition int) []string {
	keys := []string{"epoch", "head", "served", "pinned", "last", "versions", "refs"}
	for i, name := range keys {
		keys[i] = s.key(partition, name)
	}
	return append(keys, s.key(0, "partitions"))
}

// commitArgs returns the script's arguments but for the chunks' names.
func (s *Store) commitArgs(partition int, m *state.Manifest) ([]any, error) {
	manifest, err := m.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	// Two tries at one save differ at most in the time.
	timeless := *m
	timeless.Saved = time.Time{}
	b, err := timeless.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	identity := sha256.Sum256(b)

	s.mu.Lock()
	defer s.mu.Unlock()
	distrusted := ""
	if version := s.distrusted[partition]; version != 0 {
		distrusted = strconv.FormatInt(version, 10)
	}
	return []any{
		s.key(partition, ""), partition,
		m.Epoch, m.Position.Next, m.Events, hex.EncodeToString(m.Model[:]),
		hex.EncodeToString(identity[:]), manifest,
		m.Saved.Unix() / (24 * 60 * 60), s.cfg.Keep, s.cfg.Daily, s.cfg.Grace.Milliseconds(),
		distrusted,
	}, nil
}

// mend compares chunks that Redis may hold, but of which this store has not seen,
// in the last saves, that it holds them rightly, with what they should be, and writes those that are
// not. Without it a chunk that decayed in Redis would be part of every version to
// come. Of a chunk that Redis lacks it does nothing.
func (s *Store) mend(ctx context.Context, partition int, chunks []state.Chunk) error {
	s.mu.Lock()
	whole := s.whole[partition]
	if s.settled[partition]++; s.settled[partition] >= trusted {
		s.settled[partition], whole = 0, nil
	}
	s.mu.Unlock()
	doubtful := slices.DeleteFunc(slices.Clone(chunks), func(c state.Chunk) bool { return whole[c.Name] })
	if len(doubtful) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	sums := make([]*redis.Cmd, len(doubtful))
	for i := range doubtful {
		sums[i] = pipe.Eval(ctx, sum, []string{s.chunkKey(partition, doubtful[i].Name)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for i := range doubtful {
		stored, err := sums[i].Text()
		if err != nil {
			return err
		}
		if want := sha1.Sum(doubtful[i].Data); stored == "" || stored == hex.EncodeToString(want[:]) {
			continue
		}
		key := s.chunkKey(partition, doubtful[i].Name)
		s.cfg.Log.Warn("a chunk in redis is not what its name says: writing it anew", "key", key)
		err = s.client.SetArgs(ctx, key, doubtful[i].Data, redis.SetArgs{Mode: "XX", KeepTTL: true}).Err()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// upload writes chunks that Redis lacks, to expire unless a commit makes them
// permanent. One that somebody else has written meanwhile is left alone.
func (s *Store) upload(ctx context.Context, partition int, chunks []state.Chunk) error {
	for window := range slices.Chunk(chunks, pipelined) {
		pipe := s.client.Pipeline()
		for i := range window {
			pipe.SetArgs(ctx, s.chunkKey(partition, window[i].Name), window[i].Data,
				redis.SetArgs{Mode: "NX", TTL: s.cfg.Grace})
		}
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// settle remembers what a whole version consists of, and forgets the rest.
func (s *Store) settle(partition int, names []chunkName) {
	whole := make(map[chunkName]bool, len(names))
	for _, name := range names {
		whole[name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole[partition] = whole
	delete(s.distrusted, partition)
}

// distinct returns the chunks without those whose name came before.
func distinct(chunks []state.Chunk) []state.Chunk {
	seen := make(map[chunkName]bool, len(chunks))
	return slices.DeleteFunc(chunks, func(c state.Chunk) bool {
		if seen[c.Name] {
			return true
		}
		seen[c.Name] = true
		return false
	})
}

// pick returns the chunks at the places that the script named.
func pick(chunks []state.Chunk, places []string) ([]state.Chunk, error) {
	picked := make([]state.Chunk, 0, len(places))
	for _, place := range places {
		i, err := strconv.Atoi(place)
		if err != nil || i < 0 || i >= len(chunks) {
			return nil, fmt.Errorf("commit script: place %q of %d chunks", place, len(chunks))
		}
		picked = append(picked, chunks[i])
	}
	return picked, nil
}
