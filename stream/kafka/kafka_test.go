package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/leak"
)

// The tests run on the embedded broker. With HAMLET_KAFKA=host:port, those that do not
// stop the broker run on a real one too, as the user that HAMLET_KAFKA_USER and
// HAMLET_KAFKA_PASSWORD name, by SCRAM-SHA-512.
func TestMain(m *testing.M) {
	leak.Main(m)
}

var made atomic.Int64

// topic names a topic that no other test and no earlier run has.
func topic(t testing.TB) string {
	return fmt.Sprintf("%s-%d-%d", strings.NewReplacer("/", "-", "=", "-").Replace(t.Name()), time.Now().UnixNano(), made.Add(1))
}

// cluster starts an embedded broker, or names the real one.
func cluster(t testing.TB) kafka.Config {
	t.Helper()
	cfg := kafka.Config{Brokers: []string{os.Getenv("HAMLET_KAFKA")}, Log: testLog(t)}
	if user := os.Getenv("HAMLET_KAFKA_USER"); user != "" {
		mechanism, err := scram.Mechanism(scram.SHA512, user, os.Getenv("HAMLET_KAFKA_PASSWORD"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.SASL = mechanism
	}
	if cfg.Brokers[0] == "" {
		k, err := servertest.StartKafka(servertest.KafkaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		cfg.Brokers[0] = k.Addr()
	}
	return cfg
}

// fakeCluster starts a kfake for one test, for features that only kfake has.
func fakeCluster(t testing.TB, opts ...kfake.Opt) (*kfake.Cluster, kafka.Config) {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return fake, kafka.Config{Brokers: fake.ListenAddrs(), Log: testLog(t)}
}

// testLog shows warnings only, and only of verbose runs.
func testLog(t testing.TB) *slog.Logger {
	if !testing.Verbose() {
		return nil
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func ensure(t testing.TB, cfg kafka.Config, name string) {
	t.Helper()
	if err := cfg.Ensure(within(t, 30*time.Second), name, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// newLog returns the log of a topic, which is closed with the test.
func newLog(t testing.TB, cfg kafka.Config, name string) *kafka.Log {
	t.Helper()
	log, err := kafka.NewLog(cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// numbered returns records with the values first, first+1, …
func numbered(first, n int) []stream.Record {
	records := make([]stream.Record, n)
	for i := range records {
		records[i] = stream.Record{Key: []byte("k"), Value: []byte(strconv.Itoa(first + i))}
	}
	return records
}

func add(t testing.TB, log *kafka.Log, records ...stream.Record) {
	t.Helper()
	if err := log.Append(within(t, 30*time.Second), records...); err != nil {
		t.Fatal(err)
	}
}

// all returns the records of a log.
func all(t testing.TB, log *kafka.Log) (records []stream.Record) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	b, err := log.Bounds(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for next := b.First; ; {
		some, end, err := log.Read(ctx, next, stream.Limit{}, 0)
		if err != nil && (!errors.Is(err, stream.ErrAway) || ctx.Err() != nil) {
			t.Fatal(err)
		}
		records = append(records, some...)
		if len(some) > 0 {
			next = some[len(some)-1].Offset + 1
		}
		if err == nil && next >= end {
			return records
		}
	}
}

// A keeper keeps what the members of a consumer group have read of a topic.
type keeper struct {
	mu    sync.Mutex
	taken map[int][]stream.Record // by partition, each offset once
	owner map[int]string          // who began to read the partition last
	held  map[int]string          // who reads it; "": nobody
	clash string                  // who began to read while another one did
	moved chan struct{}           // closed and renewed at every change
}

func newKeeper() *keeper {
	return &keeper{taken: map[int][]stream.Record{}, owner: map[int]string{}, held: map[int]string{}, moved: make(chan struct{})}
}

func (k *keeper) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.moved)
	k.moved = make(chan struct{})
}

// until waits for a condition on what is kept.
func (k *keeper) until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		k.mu.Lock()
		ok, moved := cond(), k.moved
		k.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-deadline:
			k.mu.Lock()
			defer k.mu.Unlock()
			t.Fatalf("%s: not within 30 s; %d records, owners %v", what, k.count(), k.owner)
		}
	}
}

func (k *keeper) count() (n int) {
	for _, records := range k.taken {
		n += len(records)
	}
	return n
}

// read reads an assigned partition as a copy does.
func (k *keeper) read(who string) func(context.Context, *kafka.Assignment) error {
	return func(ctx context.Context, a *kafka.Assignment) error {
		k.change(func() {
			if k.held[a.Partition] != "" {
				k.clash = fmt.Sprintf("partition %d: %s while %s reads", a.Partition, who, k.held[a.Partition])
			}
			k.owner[a.Partition], k.held[a.Partition] = who, who
		})
		defer k.change(func() { k.held[a.Partition] = "" })
		for next := a.Next; ctx.Err() == nil; {
			records, _, err := a.Log.Read(ctx, max(next, 0), stream.Limit{}, time.Second)
			if errors.Is(err, stream.ErrAway) {
				<-time.After(20 * time.Millisecond)
				continue
			}
			if err != nil {
				return err
			}
			k.change(func() {
				for _, r := range records {
					if r.Offset == int64(len(k.taken[a.Partition])) { // else it is read again
						k.taken[a.Partition] = append(k.taken[a.Partition], r)
					}
				}
			})
			if n := len(records); n > 0 {
				next = records[n-1].Offset + 1
				a.Commit(next)
			}
		}
		return nil
	}
}

// consume runs a member of a group in the background; stop ends it and returns Consume's error.
func consume(t testing.TB, cfg kafka.Config, name string, read func(context.Context, *kafka.Assignment) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- kafka.Consume(ctx, cfg, "group-"+name, name, read) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { stop() })
	return stop
}
