// Package redis keeps checkpoints in Redis. Each model has one writer, fenced by an
// epoch, and any number of readers. Package storetest has the laws.
//
//	store, err := redis.New(redis.Config{Addr: "127.0.0.1:6379", Model: "default"})
//	…
//	lease, err := store.Seize(ctx, "web-2/4711")
//	version, err := store.Save(ctx, &state.Checkpoint{Epoch: lease.Epoch, Position: position, Model: bytes})
//	checkpoint, version, err := store.Load(ctx, state.Served)
//
// All keys of a model have the hash slot of {<model>}. They begin with hamlet:{<model>}:0:
// and are
//
//	epoch            counter; a writer increments it and saves under the new value
//	lease            "EPOCH BEATS WRITER": who has that epoch, and whether it lives (see [state.Lease])
//	refs             words of those who watch for saves of programs before 0.2.0, which delete it
//	last             counter of versions
//	head             the newest version
//	served           the version that scorers answer from: the head, unless pinned
//	pinned           the version that an operator pinned, if any; it stays if that version is lost
//	versions         sorted set of the versions kept, by number; a lost one by its negative number
//	version:<n>      hash: manifest (see [state.Manifest]) and, for the script and for people,
//	                 epoch, writer, next, events, sha256, identity, the names of the chunks, day
//	                 (of the first save of these bytes), replaced (see [Store.MarkReplaced]), lost
//	                 (see [Store.StepBack]), and of these two the days since: counted, waited
//	chunk:<sha256>   up to 1 MiB of a model's bytes
//	promotion        which model answers in the place of this one, if anybody has promoted
//	                 one (see [state.Promotion])
//	partitions       set whose one member is 0; a model without it has no checkpoint
//
// The 0 was the partition of the log: hamlet 0.1.0 could keep several under one model's name.
// A set partitions with another member is a model that this program refuses (see
// [Store.Layout]).
//
// A save uploads the chunks that Redis lacks, with a time to live. Then one script
// checks epoch and offset, makes the chunks permanent and moves the head. The chunks
// of a writer that dies in between expire. A chunk that no kept version names expires
// after a grace, so that a reader can still fetch what its manifest lists.
//
// # Versions
//
// A version is other bytes of the model, not another save. Where the head has the bytes already,
// a save writes the head's manifest again, under its number: a restart takes a new epoch, and a
// log of duplicates moves the position alone. So neither pushes out what an operator may want to
// go back to. [state.Heading.Identity] differs after it, [state.Heading.Model] does not.
//
// Kept are the last Config.Keep versions with distinct bytes, of older ones the first of each of
// the last Config.Daily days that have one, the pinned one, and those that were replaced or lost,
// for 30 days on which the model was saved. No clock is asked what day it is: a day is what saves
// have written. So a clock that runs five years ahead for a while makes one day more.
//
// # Lost keys
//
// Any key may be lost or set back: by eviction, by a fail-over, by hand. A save relies
// on none. It gives its version a number above all that Redis knows, writes the set
// partitions and all pointers again, and finds the chunks in use in the kept versions. A
// key of another type counts as lost. Saving the head again restores all of that, and
// lost chunks, so a learner on a quiet stream saves the head from time to time. The field
// next of a version is only a copy: where it refuses a save, the manifest decides.
//
// # Sentinel and Cluster
//
// One node of a Cluster has the slot of a model, and the store talks to that node's master. It
// follows MOVED and ASK. While a slot moves, Redis refuses scripts with TRYAGAIN, because some
// of their keys never exist: a save waits for the end of the move. Where a master is lost, all
// requests fail with [state.ErrTransient] until its replica is the master.
//
// A replica that becomes the master may lack the last writes, which is the case above. With
// Config.Replicas a save counts only if replicas have it. Sentinel and Cluster promote the
// replica that has received most, of those that they reach.
//
// # Invariants
//
//   - The head never goes back in the log, except past a version whose bytes the
//     writer has found corrupt, and by [Store.StepBack] of the writer.
//   - The manifest of a kept version is whole at all times, and its model's bytes never change.
//   - A chunk has no time to live exactly if a kept version names it.
//   - An upload never writes a chunk that exists (SET NX): it would give a time to
//     live to a chunk that a version names.
package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// Config says where Redis is and how much to keep there.
type Config struct {
	// Addr is the host:port of one server, or of nodes of a Cluster, or of Sentinels:
	// then some of them, separated by commas.
	Addr     string
	Username string
	Password string
	DB       int
	TLS      *tls.Config // nil: no TLS. Sentinels are reached in the same way

	Cluster          bool   // Addr names nodes of a Redis Cluster
	Sentinel         string // the master's name, where Addr names Sentinels that watch it
	SentinelUsername string // of the Sentinels, which have users of their own
	SentinelPassword string

	Model string // see [state.IsModelName]; default "default"

	Keep  int           // newest versions kept, by distinct bytes; default 3
	Daily *int          // number of days whose first version is kept too; nil: 30
	Grace time.Duration // for a load and an upload, beyond what the measured speed allows; default 30 s

	Replicas    int           // replicas that must have a save before it counts; 0: Redis itself is enough
	ReplicaWait time.Duration // how long a save waits for them; default 5 s

	Log *slog.Logger // nil: silent
}

// A Store keeps the checkpoints of one model. It may be used concurrently, but
// only one goroutine at a time should save.
type Store struct {
	cfg     Config
	client  *redis.Client        // of the one server, or of the master that Sentinels name
	cluster *redis.ClusterClient // nil without a Cluster; see node
	shared  bool                 // another store closes them
	watcher string               // the word under which it watches for saves of older programs

	writing, reading pace // of chunks

	mu    sync.Mutex
	cache cache // mu guards it
}

// A cache is what a store knows about the model that it saves.
type cache struct {
	// trusted holds the chunks of the version last saved or loaded. Their bytes in
	// Redis matched their names. Only trust sets it.
	trusted map[chunkName]bool
	saves   int   // since all chunks were compared; below compareEvery
	corrupt int64 // the head that Load or Save found corrupt and no save has replaced yet; 0: none
	epoch   int64 // the largest that this store took; it never takes a smaller one
}

// A chunkName is the SHA-256 of a chunk.
type chunkName = [32]byte

// New returns a store without connecting; [Store.Ping] tells whether Redis answers.
func New(cfg Config) (*Store, error) {
	cfg.Model = cmp.Or(cfg.Model, "default")
	cfg.Keep = cmp.Or(cfg.Keep, 3)
	cfg.Daily = cmp.Or(cfg.Daily, new(30))
	cfg.Grace = cmp.Or(cfg.Grace, 30*time.Second)
	cfg.ReplicaWait = cmp.Or(cfg.ReplicaWait, 5*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	errs := cfg.checkReach()
	if !state.IsModelName(cfg.Model) {
		errs = append(errs, fmt.Errorf("model %q: a name has 1 to 64 small letters, digits and hyphens", cfg.Model))
	}
	if cfg.Keep < 0 || *cfg.Daily < 0 {
		errs = append(errs, fmt.Errorf("keep %d versions and %d days: keep at least 1, and no negative number",
			cfg.Keep, *cfg.Daily))
	}
	if cfg.Grace < time.Millisecond {
		errs = append(errs, fmt.Errorf("grace %v: give at least a millisecond, better half a minute", cfg.Grace))
	}
	if cfg.Replicas < 0 || cfg.ReplicaWait < time.Millisecond {
		errs = append(errs, fmt.Errorf("wait %v for %d replicas: give at least a millisecond and no negative number",
			cfg.ReplicaWait, cfg.Replicas))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redis store: %w", err)
	}
	s := &Store{
		cfg:     cfg,
		writing: pace{least: minLimit}, reading: pace{least: minLimit},
	}
	s.watcher = rand.Text()[:12]
	s.connect()
	return s, nil
}

// Close ends the connections, unless they are another store's.
func (s *Store) Close() error {
	if s.shared {
		return nil
	}
	err := s.client.Close()
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Close())
	}
	return err
}

// Ping reports whether Redis answers: of a Cluster, the node that holds the model.
func (s *Store) Ping(ctx context.Context) error {
	if s.cluster != nil {
		if _, err := s.cluster.MasterForKey(ctx, s.key("partitions")); err != nil {
			return s.explain("find the model's node", err)
		}
	}
	return s.explain("ping", s.node(ctx).Ping(ctx).Err())
}

// Heading describes what a pointer names, in two round trips. Before the first save the
// error wraps [state.ErrNone].
func (s *Store) Heading(ctx context.Context, which state.Pointer) (state.Heading, error) {
	doing := s.doing("read " + which.String() + " of")
	h, err := s.pointers(ctx, which)
	if err == nil && which == state.Served && h.Pinned != 0 && h.Pinned != h.Version {
		// The pin is lost, or an operator changed it between the two reads: ask again.
		h, err = s.pointers(ctx, which)
	}
	if err != nil {
		return h, s.explain(doing, err)
	}
	fields, err := s.node(ctx).HMGet(ctx, s.versionKey(h.Version),
		"next", "identity", "epoch", "writer", "sha256").Result()
	if err != nil {
		return h, s.explain(doing, err)
	}
	if next, ok := fields[0].(string); ok {
		if h.Next, err = strconv.ParseInt(next, 10, 64); err != nil {
			return h, fmt.Errorf("%s: %w: version %d has the next offset %q", doing, state.ErrCorrupt, h.Version, next)
		}
	}
	h.Identity, _ = fields[1].(string)
	if epoch, ok := fields[2].(string); ok {
		h.Epoch, _ = strconv.ParseInt(epoch, 10, 64) // damaged: it is nobody's
	}
	h.Writer, _ = fields[3].(string)
	h.Model, _ = fields[4].(string)
	return h, nil
}

// pointers reads a pointer and the pin, one after the other.
func (s *Store) pointers(ctx context.Context, which state.Pointer) (h state.Heading, err error) {
	pipe := s.node(ctx).Pipeline()
	pointer := pipe.Get(ctx, s.key(which.String()))
	pinned := pipe.Get(ctx, s.key("pinned"))
	_, _ = pipe.Exec(ctx) // each command has its own error
	if h.Version, err = s.parsePointer(which, pointer); err != nil {
		return h, err
	}
	if err := pinned.Err(); err != nil && !errors.Is(err, redis.Nil) && !otherType(err) {
		return h, err
	}
	h.Pinned = parsePin(pinned.Val())
	return h, nil
}

// parsePin returns the version that the key pinned holds. A value that is no version counts
// as no pin; the next save deletes it.
func parsePin(text string) int64 {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return max(version, 0)
}

func (s *Store) pointer(ctx context.Context, which state.Pointer) (int64, error) {
	return s.parsePointer(which, s.node(ctx).Get(ctx, s.key(which.String())))
}

func (s *Store) parsePointer(which state.Pointer, reply *redis.StringCmd) (int64, error) {
	key := s.key(which.String())
	text, err := reply.Result()
	if errors.Is(err, redis.Nil) {
		return 0, state.ErrNone
	}
	if otherType(err) {
		return 0, fmt.Errorf("%w: %s is of another type: delete the key, and the newest version counts",
			state.ErrCorrupt, key)
	}
	if err != nil {
		return 0, err
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s holds %q, which is no version: delete the key, and the newest version counts",
			state.ErrCorrupt, key, text[:min(len(text), 40)])
	}
	return version, nil
}

// Layout refuses a model of hamlet 0.1.0 that is one model for each partition of a log, which
// no program learns any more: the error wraps [state.ErrPartitions]. It passes over members of the
// set that are no partitions, which only damage can leave there.
func (s *Store) Layout(ctx context.Context) error {
	members, err := s.node(ctx).SMembers(ctx, s.key("partitions")).Result()
	if otherType(err) {
		return fmt.Errorf("redis at %s: %s is no set: delete it, and the learners' next saves make it again",
			s.cfg.Addr, s.key("partitions"))
	}
	if err != nil {
		return s.explain("see whether there is a model "+s.cfg.Model, err)
	}
	var partitions []int
	for _, member := range members {
		if partition, err := strconv.Atoi(member); err == nil && partition >= 0 && strconv.Itoa(partition) == member {
			partitions = append(partitions, partition)
		}
	}
	slices.Sort(partitions)
	if len(partitions) > 0 && partitions[len(partitions)-1] > 0 {
		return fmt.Errorf("redis at %s: %w", s.cfg.Addr, &state.PartitionsError{Model: s.cfg.Model, Partitions: partitions})
	}
	return nil
}

// doing describes an operation on the model, for errors.
func (s *Store) doing(what string) string {
	return what + " model " + s.cfg.Model
}

// key returns the key of one name.
func (s *Store) key(name string) string {
	return "hamlet:{" + s.cfg.Model + "}:0:" + name
}

func (s *Store) versionKey(version int64) string {
	return s.key("version:" + strconv.FormatInt(version, 10))
}

func (s *Store) chunkKey(name chunkName) string {
	return s.key("chunk:" + hex.EncodeToString(name[:]))
}
