package redis

import (
	"cmp"
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

// sum returns the SHA-1 of a chunk in Redis, "" if there is none. Redis has no SHA-256.
// It detects damage. It does not stop an attacker, who could write manifests too. 1 MiB
// takes 2 ms.
const sum = `
local chunk = redis.pcall('GET', KEYS[1])
if type(chunk) == 'table' then -- another type: it counts as missing
  redis.call('DEL', KEYS[1])
  return ''
end
if not chunk then return '' end
return redis.sha1hex(chunk)`

const (
	pipelined   = 8 // most chunks in one pipeline: 8 MiB in flight
	commitTries = 5 // rounds of uploading missing chunks

	// compareEvery is the number of saves between comparisons of trusted chunks.
	// Without one, a damaged chunk that never changes would be in every later version.
	// With a save each 3 s that is once a minute. It takes Redis 2 ms a chunk.
	compareEvery = 20
)

// Why a stale writer overwrites no newer one: a save needs the epoch that Redis holds,
// and who acquires the lease sets it above what Redis holds, above the head's, and above any
// that this store acquired. The newer writer acquires last.
//   - Redis is whole: the older one's epoch is smaller, and its saves are refused.
//   - The epoch was set back to e: a writer above e gets ErrLost and acquires again, above
//     its own. One that once had e may save until then, but not below the head's
//     offset; the owner's next save is above it, or reloads. Both have read one log, and
//     a model is a function of its log, so neither loses what the other has learnt.
//   - Epoch and head are both lost: the writer with the larger offset keeps its model;
//     the other one reloads it.

// Save writes a checkpoint and moves the model's head to it. It uploads only the
// chunks that Redis lacks, in commands of at most 1 MiB, so that Redis answers others
// in between. Each request has a time limit that follows the measured speed, so that a
// save ends by itself where Redis does not answer, and is never too slow to succeed.
//
// The epoch must be the last one that any client acquired or seized. The offset
// must not be below the head's. Otherwise nothing changes and the error wraps
// [state.ErrStale], and [state.ErrLost] too if Redis lost the epoch. Saving the head
// again returns its version, and so does saving its bytes under another epoch or at a later
// position: the rest of c then takes the place of what the version had. Each restores lost
// chunks. A zero Saved means now.
//
// With Config.Replicas it then waits until that many replicas have the version. If
// fewer have it after Config.ReplicaWait the error wraps [state.ErrTransient], although
// Redis itself holds the version and readers get it: saving again waits again.
func (s *Store) Save(ctx context.Context, c *state.Checkpoint) (version int64, err error) {
	doing := s.doing("save")
	unique, trusted := []chunk(nil), s.toTrust()
	m, err := state.Cut(c, unlisted(&unique, trusted))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	if m.Saved.IsZero() {
		m.Saved = time.Now()
	}
	args, err := s.commitArgs(m)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	for i := range unique {
		args = append(args, hex.EncodeToString(unique[i].name[:]))
	}
	if err := s.repair(ctx, c, unique); err != nil {
		return 0, s.explain(doing, err)
	}
	conn := s.node(ctx).Conn() // WAIT waits for what its own connection wrote
	defer func() { conn.Close() }()
	var moved error // what the last node said, if it has handed the model over
	for range commitTries {
		reply, err := commit.Run(directly(ctx), conn, s.commitKeys(), args...).StringSlice()
		if addr, ok := redis.IsMovedError(err); ok && s.cluster != nil {
			moved = err
			conn.Close()
			conn = s.relocated(ctx, addr).Conn()
			continue
		}
		moved = nil
		if err != nil {
			return 0, s.explain(doing, err)
		}
		switch reply[0] {
		case "saved":
			s.trust(m.Chunks, 0)
			version, err := strconv.ParseInt(reply[1], 10, 64)
			if err == nil {
				err = s.replicated(ctx, conn, doing, version)
			}
			if err != nil {
				return 0, err
			}
			return version, nil
		case "stale":
			if reply[1] == "epoch" {
				return 0, stale(doing, reply[2], c.Epoch)
			}
			if head, ok := s.falseOffset(ctx, c.Position.Next); ok {
				args[distrusted] = strconv.FormatInt(head, 10)
				continue
			}
			return 0, fmt.Errorf("%s: %w: the head's next offset is %s, this one's %d: reload",
				doing, state.ErrStale, reply[2], c.Position.Next)
		}
		missing, err := pick(unique, reply[1:])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", doing, err)
		}
		if err := s.upload(ctx, c, missing); err != nil {
			return 0, s.explain(doing, err)
		}
	}
	if moved != nil {
		return 0, s.explain(doing, moved)
	}
	return 0, fmt.Errorf("%s: redis at %s loses chunks as fast as they come: set its maxmemory-policy "+
		"to noeviction and give it memory, or, if it is far away, give a longer grace than %v",
		doing, s.cfg.Addr, s.cfg.Grace)
}

// replicated waits until the replicas that Config asks for have what conn wrote last, and
// with it all that Redis wrote before: the chunks of other connections.
func (s *Store) replicated(ctx context.Context, conn *redis.Conn, doing string, version int64) error {
	if s.cfg.Replicas == 0 {
		return nil
	}
	have, err := conn.Wait(ctx, s.cfg.Replicas, s.cfg.ReplicaWait).Result()
	if err != nil {
		return s.explain(doing+": wait for replicas", err)
	}
	if have < int64(s.cfg.Replicas) {
		return state.Transient(fmt.Errorf("%s: redis at %s holds version %d, but after %v only %d of the %d replicas "+
			"that must have it do: see to its replicas", doing, s.cfg.Addr, version, s.cfg.ReplicaWait, have, s.cfg.Replicas))
	}
	return nil
}

// distrusted is the place of the distrusted head in what commitArgs returns.
const distrusted = 11

// falseOffset reports whether the head does not come further than next, although its
// field next says so: the manifest, which has a hash, says something else. It returns
// the head.
func (s *Store) falseOffset(ctx context.Context, next int64) (head int64, ok bool) {
	head, err := s.pointer(ctx, state.Head)
	if err != nil {
		return 0, false
	}
	b, err := s.node(ctx).HGet(ctx, s.versionKey(head), "manifest").Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, false
	}
	var m state.Manifest
	err = m.UnmarshalBinary(b)
	if err != nil && !errors.Is(err, state.ErrCorrupt) || err == nil && m.Position.Next > next {
		return 0, false
	}
	s.cfg.Log.Warn("the head in redis names an offset that its manifest does not have: replacing it",
		"model", s.cfg.Model, "version", head)
	return head, true
}

func (s *Store) commitKeys() []string {
	keys := []string{"epoch", "head", "served", "pinned", "last", "versions", "lease", "partitions"}
	for i, name := range keys {
		keys[i] = s.key(name)
	}
	return keys
}

// commitArgs returns the script's arguments except the chunks' names.
func (s *Store) commitArgs(m *state.Manifest) ([]any, error) {
	manifest, err := m.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	// A save that is tried again differs only in the time.
	timeless := *m
	timeless.Saved = time.Time{}
	b, err := timeless.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	identity := sha256.Sum256(b)

	s.mu.Lock()
	defer s.mu.Unlock()
	corrupt := ""
	if version := s.cache.corrupt; version != 0 {
		corrupt = strconv.FormatInt(version, 10)
	}
	return []any{
		s.key(""), m.Epoch, m.Position.Next, m.Events, hex.EncodeToString(m.Model[:]),
		hex.EncodeToString(identity[:]), manifest,
		m.Saved.Unix() / (24 * 60 * 60), s.cfg.Keep, *s.cfg.Daily, s.grace(int(m.Length)).Milliseconds(),
		corrupt, m.Writer,
	}, nil
}

// A chunk is one of a model that is being saved. Its data is made where it is needed.
type chunk struct {
	name  chunkName
	place int    // among the model's chunks
	size  int    // in bytes
	sha1  string // in hexadecimal; "" if the chunk in Redis is trusted
}

// unlisted returns what adds to list each chunk whose name is not there.
func unlisted(list *[]chunk, trusted map[chunkName]bool) func(state.Chunk) error {
	seen, place := map[chunkName]bool{}, 0
	return func(c state.Chunk) error {
		if !seen[c.Name] {
			seen[c.Name] = true
			one := chunk{name: c.Name, place: place, size: len(c.Data)}
			if !trusted[c.Name] {
				sum := sha1.Sum(c.Data)
				one.sha1 = hex.EncodeToString(sum[:])
			}
			*list = append(*list, one)
		}
		place++
		return nil
	}
}

// toTrust returns the chunks that the next save need not compare: at every compareEvery-th save none.
func (s *Store) toTrust() map[chunkName]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.cache
	if w.saves++; w.saves >= compareEvery {
		w.saves = 0
		return nil
	}
	return w.trusted
}

// repair overwrites chunks in Redis that differ from these. It skips chunks that Redis lacks, and trusted ones.
func (s *Store) repair(ctx context.Context, c *state.Checkpoint, chunks []chunk) error {
	doubtful := slices.DeleteFunc(slices.Clone(chunks), func(c chunk) bool { return c.sha1 == "" })
	if len(doubtful) == 0 {
		return nil
	}
	pipe := s.node(ctx).Pipeline()
	sums := make([]*redis.Cmd, len(doubtful))
	for i := range doubtful {
		sums[i] = pipe.Eval(ctx, sum, []string{s.chunkKey(doubtful[i].name)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	var wrong []chunk
	for i := range doubtful {
		stored, err := sums[i].Text()
		if err != nil {
			return err
		}
		if stored == "" || stored == doubtful[i].sha1 {
			continue
		}
		wrong = append(wrong, doubtful[i])
		s.cfg.Log.Warn("a chunk in redis is not what its name says: overwriting it", "key", s.chunkKey(doubtful[i].name))
	}
	return s.send(ctx, c, wrong, func(int) redis.SetArgs { return redis.SetArgs{Mode: "XX", KeepTTL: true} })
}

// upload writes chunks that Redis lacks. They expire unless a commit makes them
// permanent. The time to live lets the chunks that come after arrive first.
func (s *Store) upload(ctx context.Context, c *state.Checkpoint, chunks []chunk) error {
	return s.send(ctx, c, chunks, func(left int) redis.SetArgs {
		return redis.SetArgs{Mode: "NX", TTL: s.grace(left)}
	})
}

// send writes chunks of a checkpoint, which are in order, a few at a time. args are those of a few, with left bytes to
// send, theirs included.
func (s *Store) send(ctx context.Context, c *state.Checkpoint, chunks []chunk, args func(left int) redis.SetArgs) error {
	if len(chunks) == 0 {
		return nil // the model need not be encoded again
	}
	left := 0
	for i := range chunks {
		left += chunks[i].size
	}
	var data [][]byte // of the first chunks
	transfer := func() error {
		size := 0
		for _, b := range data {
			size += len(b)
		}
		how := args(left)
		err := s.transfer(ctx, &s.writing, size, func(pipe redis.Pipeliner) {
			for i, b := range data {
				pipe.SetArgs(ctx, s.chunkKey(chunks[i].name), b, how)
			}
		})
		left -= size
		chunks, data = chunks[len(data):], data[:0]
		return err
	}
	place := 0
	return state.EachChunk(c, func(b []byte) error {
		wanted := len(data) < len(chunks) && chunks[len(data)].place == place
		place++
		if !wanted {
			return nil
		}
		if len(data) < cap(data) { // its bytes were sent
			data = data[:len(data)+1]
		} else {
			data = append(data, nil)
		}
		last := &data[len(data)-1]
		*last = append((*last)[:0], b...)
		if len(data) >= min(s.writing.window(), len(chunks)) {
			return transfer()
		}
		return nil
	})
}

// trust records the chunks of a verified version, and the corrupt head if there is one.
func (s *Store) trust(names []chunkName, corrupt int64) {
	trusted := make(map[chunkName]bool, len(names))
	for _, name := range names {
		trusted[name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.cache
	w.trusted, w.corrupt = trusted, corrupt
}

// pick returns the chunks at the places that the script listed.
func pick(chunks []chunk, places []string) ([]chunk, error) {
	picked := make([]chunk, 0, len(places))
	for _, place := range places {
		i, err := strconv.Atoi(place)
		if err != nil || i < 0 || i >= len(chunks) {
			return nil, fmt.Errorf("commit script: place %q of %d chunks", place, len(chunks))
		}
		picked = append(picked, chunks[i])
	}
	slices.SortFunc(picked, func(a, b chunk) int { return cmp.Compare(a.place, b.place) })
	return picked, nil
}
