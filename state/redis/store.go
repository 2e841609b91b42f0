// Package redis keeps checkpoints in Redis: one writer a partition, fenced by an
// epoch, and any number of readers.
//
// The keys of one model share the hash slot of {<model>}. For each partition,
// under hamlet:{<model>}:<partition>:, they are
//
//	epoch            counter; who takes the partition increments it and writes under the new value
//	last             counter of versions
//	head             the newest version
//	served           the version that scorers answer from: the head, unless pinned
//	pinned           the version that served is held at, if any
//	versions         sorted set of the versions kept
//	version:<n>      hash: manifest (see [state.Manifest]) and, for the script and for people,
//	                 epoch, next, events, sha256, day, identity and the names of the chunks
//	chunk:<sha256>   up to 1 MiB of a model's bytes
//	refs             hash: how many kept versions name a chunk
//
// and hamlet:{<model>}:0:partitions is the set of partitions with a checkpoint.
//
// A save uploads the chunks that Redis lacks, one command each, with a time to
// live, and then runs one script that checks epoch and offset, makes the chunks
// permanent and flips the head. A writer that dies in between leaves chunks that
// expire. A chunk that no kept version names expires after a grace, so that a
// reader that holds a manifest can still fetch what it lists.
//
// # Invariants
//
//   - The head never goes back in the log, with one exception: past a version
//     whose bytes the writer has read and found corrupt.
//   - Every chunk without a time to live is named by a kept version, and every
//     chunk that a kept version names is without one.
//   - An upload never touches a chunk that exists (SET NX): its time to live would
//     come back on a chunk that a version names.
package redis

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"hamlet/state"
)

// Config says where Redis is and how much to keep there.
type Config struct {
	Addr     string // host:port of one server, or of a primary behind one address; redirections of Redis Cluster are not followed
	Username string
	Password string
	DB       int
	TLS      *tls.Config // nil: no TLS
	Model    string      // [a-z0-9-]+; default "default"

	Keep  int           // newest versions kept; default 3
	Daily int           // days of which the first version is kept as well; default 30, negative none
	Grace time.Duration // how long what is no longer named can still be read; default 30 s. What a save uploads must arrive within it

	Log *slog.Logger // nil: silent
}

// A Store keeps the checkpoints of one model. It may be used concurrently, but
// only one goroutine at a time should save a partition.
type Store struct {
	cfg    Config
	client *redis.Client

	mu         sync.Mutex
	whole      map[int]map[chunkName]bool // by partition: chunks known to be in Redis as their names say
	settled    map[int]int                // by partition: saves since all chunks were compared
	distrusted map[int]int64              // by partition: a head that Load found corrupt
}

// A chunkName is the SHA-256 of a chunk.
type chunkName = [32]byte

var modelName = regexp.MustCompile(`^[a-z0-9-]+$`)

// New returns a store without connecting; [Store.Ping] tells whether Redis answers.
func New(cfg Config) (*Store, error) {
	if cfg.Model == "" {
		cfg.Model = "default"
	}
	if cfg.Keep == 0 {
		cfg.Keep = 3
	}
	if cfg.Daily == 0 {
		cfg.Daily = 30
	}
	cfg.Daily = max(cfg.Daily, 0)
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if cfg.Addr == "" {
		errs = append(errs, errors.New("no address: give host:port"))
	}
	if !modelName.MatchString(cfg.Model) {
		errs = append(errs, fmt.Errorf("model %q: a name has small letters, digits and hyphens only", cfg.Model))
	}
	if cfg.DB < 0 {
		errs = append(errs, fmt.Errorf("database %d is negative", cfg.DB))
	}
	if cfg.Keep < 0 {
		errs = append(errs, fmt.Errorf("keep %d versions: keep at least 1", cfg.Keep))
	}
	if cfg.Grace < time.Millisecond {
		errs = append(errs, fmt.Errorf("grace %v: give at least a millisecond, better half a minute", cfg.Grace))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redis store: %w", err)
	}
	return &Store{
		cfg: cfg,
		client: redis.NewClient(&redis.Options{
			Addr:      cfg.Addr,
			Username:  cfg.Username,
			Password:  cfg.Password,
			DB:        cfg.DB,
			TLSConfig: cfg.TLS,
			// A deadline must cut a read in flight, and a command must not be sent
			// twice behind our back: Take is not idempotent.
			ContextTimeoutEnabled: true,
			MaxRetries:            -1,
			DialerRetries:         1,
			DialTimeout:           5 * time.Second,
			// Eight chunks travel in one write.
			ReadTimeout:  10 * time.Second,
			WriteTimeout: 10 * time.Second,
			// What only some servers know.
			Protocol:                 2,
			DisableIdentity:          true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}),
		whole:      make(map[int]map[chunkName]bool),
		settled:    make(map[int]int),
		distrusted: make(map[int]int64),
	}, nil
}

// Close ends the connections.
func (s *Store) Close() error {
	return s.client.Close()
}

// Ping asks Redis for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return s.explain("ping", err)
	}
	return nil
}

// Take makes the caller the partition's only writer and returns its epoch, which
// goes into the checkpoints that it saves. Whoever held the partition before gets
// [state.ErrStale] from now on.
func (s *Store) Take(ctx context.Context, partition int) (epoch int64, err error) {
	epoch, err = s.client.Incr(ctx, s.key(partition, "epoch")).Result()
	if err != nil {
		return 0, s.explain(fmt.Sprintf("take partition %d of model %s", partition, s.cfg.Model), err)
	}
	return epoch, nil
}

// Heading returns what a pointer names, at the cost of a GET and an HMGET. Numbers
// alone do not tell a reader whether there is anything new: a Redis that lost its
// data, or some of them, gives the same number to another version. It returns
// [state.ErrNone] before the first save.
func (s *Store) Heading(ctx context.Context, partition int, which state.Pointer) (state.Heading, error) {
	doing := fmt.Sprintf("read %s of partition %d of model %s", which, partition, s.cfg.Model)
	h := state.Heading{}
	var err error
	if h.Version, err = s.pointer(ctx, partition, which); err != nil {
		return h, s.explain(doing, err)
	}
	fields, err := s.client.HMGet(ctx, s.versionKey(partition, h.Version), "next", "identity").Result()
	if err != nil {
		return h, s.explain(doing, err)
	}
	if next, ok := fields[0].(string); ok {
		if h.Next, err = strconv.ParseInt(next, 10, 64); err != nil {
			return h, fmt.Errorf("%s: %w: version %d has the next offset %q", doing, state.ErrCorrupt, h.Version, next)
		}
	}
	if identity, ok := fields[1].(string); ok {
		h.Identity = identity
	}
	return h, nil
}

func (s *Store) pointer(ctx context.Context, partition int, which state.Pointer) (int64, error) {
	key := s.key(partition, which.String())
	text, err := s.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return 0, state.ErrNone
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

// Partitions returns the partitions that have a checkpoint, ascending; none is
// no error.
func (s *Store) Partitions(ctx context.Context) ([]int, error) {
	members, err := s.client.SMembers(ctx, s.key(0, "partitions")).Result()
	if err != nil {
		return nil, s.explain("list the partitions of model "+s.cfg.Model, err)
	}
	partitions := make([]int, 0, len(members))
	for _, member := range members {
		partition, err := strconv.Atoi(member)
		if err != nil {
			return nil, fmt.Errorf("redis at %s: %s holds %q, which is no partition: remove it with SREM",
				s.cfg.Addr, s.key(0, "partitions"), member)
		}
		partitions = append(partitions, partition)
	}
	slices.Sort(partitions)
	return partitions, nil
}

// key returns the key of one name under a partition.
func (s *Store) key(partition int, name string) string {
	return fmt.Sprintf("hamlet:{%s}:%d:%s", s.cfg.Model, partition, name)
}

func (s *Store) versionKey(partition int, version int64) string {
	return s.key(partition, "version:"+strconv.FormatInt(version, 10))
}

func (s *Store) chunkKey(partition int, name chunkName) string {
	return s.key(partition, "chunk:"+hex.EncodeToString(name[:]))
}
