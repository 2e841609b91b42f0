package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/scram"

	"hamlet/stream/embedded"
	"hamlet/stream/embedded/leak"
	"hamlet/stream/kafka"
)

// The tests run on the embedded broker. With HAMLET_KAFKA=host:port, those that do not
// stop the broker run on a real one too, as the user that HAMLET_KAFKA_USER and
// HAMLET_KAFKA_PASSWORD name, by SCRAM-SHA-512.
func TestMain(m *testing.M) {
	leak.Main(m)
}

var topics atomic.Int64

// topic names a topic that no other test and no earlier run has.
func topic(t *testing.T) string {
	return fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano(), topics.Add(1))
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
		k, err := embedded.StartKafka(embedded.KafkaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		cfg.Brokers[0] = k.Addr()
	}
	return cfg
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

func ensure(t testing.TB, cfg kafka.Config, name string, partitions int) {
	t.Helper()
	if err := kafka.EnsureTopic(within(t, 30*time.Second), cfg, name, partitions, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func newProducer(t testing.TB, cfg kafka.Config) *kafka.Producer {
	t.Helper()
	p, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// numbered returns records with the values first, first+1, … and keys of that
// many values.
func numbered(topic string, first, n, keys int) []kafka.Record {
	records := make([]kafka.Record, n)
	for i := range records {
		v := strconv.Itoa(first + i)
		records[i] = kafka.Record{Topic: topic, Key: []byte(strconv.Itoa((first + i) % keys)), Value: []byte(v)}
	}
	return records
}

// A keeper is the saved state of a topic, which outlives handlers.
type keeper struct {
	mu    sync.Mutex
	next  map[int]int64
	taken map[int][]kafka.Record
	count int
	owner map[int]string
	asked map[int][]kafka.Record // what Follows was asked about
	log   []string               // "a open 0", "a close 0", …
	moved chan struct{}          // closed and renewed at every change
}

func newKeeper() *keeper {
	return &keeper{
		next: map[int]int64{}, taken: map[int][]kafka.Record{}, asked: map[int][]kafka.Record{},
		owner: map[int]string{}, moved: make(chan struct{}),
	}
}

func (k *keeper) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.moved)
	k.moved = make(chan struct{})
}

// until waits for a condition on the state.
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
			t.Fatalf("%s: not within 30 s; %d records, owners %v, log %v", what, k.count, k.owner, k.log)
		}
	}
}

// handlers counts those that were opened, and those that were closed. The group may form
// again at any time, and opens new ones.
func (k *keeper) handlers() (opened, closed int) {
	for _, line := range k.log {
		switch _, what, _ := strings.Cut(line, " "); {
		case strings.HasPrefix(what, "open"):
			opened++
		case strings.HasPrefix(what, "close"):
			closed++
		}
	}
	return opened, closed
}

// A handler of a keeper takes records, and saves when it is closed.
type handler struct {
	k         *keeper
	who       string
	partition int
	next      int64
	stateful  bool
	handle    func(batch []kafka.Record) error // nil: none
	idle      func() error                     // nil: none
	confirm   func(context.Context) error
}

func (k *keeper) open(who string) func(context.Context, int) (kafka.Handler, error) {
	return func(_ context.Context, partition int) (kafka.Handler, error) {
		h := &handler{k: k, who: who, partition: partition}
		k.change(func() {
			h.next, h.stateful = k.next[partition]
			k.owner[partition] = who
			k.log = append(k.log, fmt.Sprintf("%s open %d", who, partition))
		})
		return h, nil
	}
}

func (h *handler) Position(confirm func(context.Context) error) (int64, bool) {
	h.confirm = confirm
	return h.next, h.stateful
}

// Follows compares with what was taken at that offset, if anything was.
func (h *handler) Follows(last kafka.Record) bool {
	same := true
	h.k.change(func() {
		h.k.asked[h.partition] = append(h.k.asked[h.partition], last)
		for _, r := range h.k.taken[h.partition] {
			if r.Offset == last.Offset && !sameContent(&r, &last) {
				same = false
			}
		}
	})
	return same
}

// sameContent compares key, value and headers. A nil key or value equals an empty one.
func sameContent(a, b *kafka.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b kafka.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

func (h *handler) Handle(_ context.Context, batch []kafka.Record) error {
	if h.handle != nil {
		if err := h.handle(batch); err != nil {
			return err
		}
	}
	h.k.change(func() {
		h.k.taken[h.partition] = append(h.k.taken[h.partition], batch...)
		h.k.count += len(batch)
		h.next = batch[len(batch)-1].Offset + 1
	})
	return nil
}

func (h *handler) Idle(context.Context) error {
	if h.idle != nil {
		return h.idle()
	}
	return nil
}

// save asks whether the records are of one log, and keeps the position if they are.
func (h *handler) save(ctx context.Context) error {
	if err := h.confirm(ctx); err != nil {
		return err
	}
	h.k.change(func() { h.k.next[h.partition] = h.next })
	return nil
}

func (h *handler) Close(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.k.change(func() {
		h.k.next[h.partition] = h.next
		h.k.log = append(h.k.log, fmt.Sprintf("%s close %d", h.who, h.partition))
	})
	return nil
}

// start runs a consumer in the background; stop ends it and returns Run's error.
func start(t testing.TB, cfg kafka.ConsumerConfig, open func(context.Context, int) (kafka.Handler, error)) (stop func() error) {
	t.Helper()
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = 30 * time.Second
	}
	c, err := kafka.NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, open) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() { cancel(); result = <-ended })
		return result
	}
	t.Cleanup(func() { stop() })
	return stop
}

func TestOrderWithinPartitions(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 3)
	p := newProducer(t, cfg)
	const n = 5000
	for i := 0; i < n; i += 500 {
		if err := p.Publish(t.Context(), numbered(name, i, 500, 17)...); err != nil {
			t.Fatal(err)
		}
	}
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
	k.until(t, "all records", func() bool { return k.count == n })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	home := map[string]int{}
	for partition, records := range k.taken {
		last := -1
		for i, r := range records {
			if r.Offset != int64(i) || r.Partition != partition || r.Topic != name {
				t.Fatalf("partition %d, record %d: got offset %d of partition %d of %q", partition, i, r.Offset, r.Partition, r.Topic)
			}
			v, _ := strconv.Atoi(string(r.Value))
			if v <= last {
				t.Fatalf("partition %d: %d after %d", partition, v, last)
			}
			last = v
			if p, ok := home[string(r.Key)]; ok && p != partition {
				t.Fatalf("key %q in partitions %d and %d", r.Key, p, partition)
			}
			home[string(r.Key)] = partition
		}
	}
	if len(k.taken) != 3 {
		t.Errorf("records in %d partitions, want 3", len(k.taken))
	}
}

func TestPositionWinsOverGroupOffset(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), numbered(name, 0, 100, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	stop := start(t, consumer, k.open("a"))
	k.until(t, "the first run", func() bool { return k.count == 100 })
	if err := stop(); err != nil { // the group's offset is 100 now
		t.Fatal(err)
	}
	k.change(func() { k.next[0], k.taken[0], k.count = 40, nil, 0 })
	stop = start(t, consumer, k.open("b"))
	k.until(t, "the second run", func() bool { return k.count == 60 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if first := k.taken[0][0].Offset; first != 40 {
		t.Errorf("read from %d, want 40", first)
	}
}

func TestCancelClosesOnce(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.open("a"))
	k.until(t, "both partitions", func() bool { return len(k.owner) == 2 })
	if err := stop(); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
	opened, closed := k.handlers()
	if closed != opened {
		t.Errorf("%d handlers opened and %d closed: %v", opened, closed, k.log)
	}
}
