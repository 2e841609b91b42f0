package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream/kafka"
)

// hooked is a keeper's handler that calls a test's Handle first.
func (k *keeper) hooked(who string, handle func(ctx context.Context, partition int, batch []kafka.Record) error) func(context.Context, int) (kafka.Handler, error) {
	open := k.open(who)
	return func(ctx context.Context, partition int) (kafka.Handler, error) {
		h, err := open(ctx, partition)
		return &hook{h, func(ctx context.Context, batch []kafka.Record) error { return handle(ctx, partition, batch) }}, err
	}
}

type hook struct {
	kafka.Handler
	before func(context.Context, []kafka.Record) error
}

func (h *hook) Handle(ctx context.Context, batch []kafka.Record) error {
	if err := h.before(ctx, batch); err != nil {
		return err
	}
	return h.Handler.Handle(ctx, batch)
}

func TestRebalanceMovesPartitions(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 4)
	p := newProducer(t, cfg)
	k := newKeeper()
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	owned := func(who string) (n int) {
		for _, w := range k.owner {
			if w == who {
				n++
			}
		}
		return n
	}

	stopA := start(t, consumer, k.open("a"))
	k.until(t, "a to own all", func() bool { return owned("a") == 4 })
	if err := p.Publish(t.Context(), numbered(name, 0, 1000, 50)...); err != nil {
		t.Fatal(err)
	}
	k.until(t, "the first thousand", func() bool { return k.count == 1000 })

	stopB := start(t, consumer, k.open("b"))
	k.until(t, "a and b to share", func() bool { return owned("a") == 2 && owned("b") == 2 })
	if err := p.Publish(t.Context(), numbered(name, 1000, 1000, 50)...); err != nil {
		t.Fatal(err)
	}
	k.until(t, "the second thousand", func() bool { return k.count == 2000 })

	if err := stopA(); err != nil {
		t.Fatal(err)
	}
	k.until(t, "b to own all", func() bool { return owned("b") == 4 })
	if err := p.Publish(t.Context(), numbered(name, 2000, 1000, 50)...); err != nil {
		t.Fatal(err)
	}
	k.until(t, "the third thousand", func() bool { return k.count == 3000 })
	if err := stopB(); err != nil {
		t.Fatal(err)
	}

	open := map[string]string{}
	for _, line := range k.log {
		var who, what, partition string
		fmt.Sscan(line, &who, &what, &partition)
		switch {
		case what == "open" && open[partition] != "":
			t.Errorf("partition %s opened by %s while %s has it: %v", partition, who, open[partition], k.log)
		case what == "open":
			open[partition] = who
		default:
			open[partition] = ""
		}
	}
	for partition, records := range k.taken {
		for i, r := range records {
			if r.Offset != int64(i) {
				t.Fatalf("partition %d: offset %d at place %d", partition, r.Offset, i)
			}
		}
	}
}

func TestGapIsAnError(t *testing.T) {
	cfg, name := withoutBeginning(t)
	k := newKeeper()
	k.next[0] = 30
	consumer := kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}
	c, err := kafka.NewConsumer(consumer)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(within(t, 30*time.Second), k.open("a"))
	if !errors.Is(err, kafka.ErrGap) {
		t.Fatalf("Run = %v, want ErrGap", err)
	}
	for _, want := range []string{"30", "100", "70", "--accept-gap", "partition 0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if !slices.Contains(k.log, "a close 0") {
		t.Errorf("the handler was not closed: %v", k.log)
	}

	consumer.AcceptGap = true
	stop := start(t, consumer, k.open("b"))
	k.until(t, "what is left", func() bool { return k.count == 10 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := k.taken[0][0].Offset; got != 100 {
		t.Errorf("went on at %d, want 100", got)
	}
}

// Retention that overtakes a reader is a gap as well; kafka-go skips it in silence.
func TestGapWhileReading(t *testing.T) {
	t.Parallel()
	fake, cfg := fakeCluster(t)
	const name = "t"
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	old := numbered(name, 0, 300, 1)
	noise := rand.NewChaCha8([32]byte{})
	for i := range old {
		old[i].Time = time.Now().Add(-2 * time.Hour)
		old[i].Value = make([]byte, 40_000) // together more than one fetch, also compressed
		noise.Read(old[i].Value)
	}
	for batch := range slices.Chunk(old, 20) {
		if err := p.Publish(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	k := newKeeper()
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, MaxBatch: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(within(t, 30*time.Second), k.hooked("a", func(_ context.Context, _ int, batch []kafka.Record) error {
		if batch[0].Offset > 0 {
			return nil
		}
		fake.ApplyRetention()
		return p.Publish(t.Context(), numbered(name, 300, 1, 1)...)
	}))
	if !errors.Is(err, kafka.ErrGap) {
		t.Fatalf("Run = %v, want ErrGap", err)
	}
	if last := k.taken[0][len(k.taken[0])-1].Offset; int(last) != len(k.taken[0])-1 || k.next[0] != last+1 {
		t.Errorf("%d records up to offset %d, saved %d; want all before the gap", len(k.taken[0]), last, k.next[0])
	}
}

func TestCompactionIsNoGap(t *testing.T) {
	fake, cfg := fakeCluster(t)
	const name = "compacted"
	compacted(t, cfg, name)
	p := newProducer(t, cfg)
	for i := 0; i < 500; i += 10 {
		if err := p.Publish(t.Context(), numbered(name, i, 10, 7)...); err != nil {
			t.Fatal(err)
		}
	}
	fake.Compact()
	k := newKeeper()
	// kfake's compaction moves the log's beginning; Kafka's does not.
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name, AcceptLostBeginning: true}, k.open("a"))
	k.until(t, "the end", func() bool {
		r := k.taken[0]
		return len(r) > 0 && r[len(r)-1].Offset == 499
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	if k.count == 500 {
		t.Error("nothing was compacted, so nothing was tested")
	}
}

// compacted creates a topic of one partition that the fake broker compacts.
func compacted(t *testing.T, cfg kafka.Config, name string) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	res, err := client.CreateTopics(t.Context(), &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{{
		Topic: name, NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: []kafkago.ConfigEntry{
			{ConfigName: "cleanup.policy", ConfigValue: "compact"},
			{ConfigName: "segment.bytes", ConfigValue: "1000"},
			{ConfigName: "min.cleanable.dirty.ratio", ConfigValue: "0"},
		},
	}}})
	if err != nil || res.Errors[name] != nil {
		t.Fatal(err, res.Errors)
	}
}

// If one partition's leader cannot be reached, the others are read, even if they have
// holes that must be distinguished from gaps.
func TestOthersReadWithoutALeader(t *testing.T) {
	var listening atomic.Int64
	var deafness atomic.Bool
	fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if listening.Add(1) == 1 {
			return l, err
		}
		return deaf{l, &deafness}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	cfg := kafka.Config{Brokers: fake.ListenAddrs()[:1], Log: testLog(t)}
	const name = "t"
	ensure(t, cfg, name, 2)
	deafness.Store(true)
	for partition := range int32(2) {
		if err := fake.MoveTopicPartition(name, partition, partition); err != nil {
			t.Fatal(err)
		}
	}
	group := "g"
	for fake.CoordinatorFor(group) != 0 {
		group += "g"
	}
	var records []kafka.Record
	for _, r := range numbered(name, 0, 20, 20) {
		if (kafkago.Murmur2Balancer{}).Balance(kafkago.Message{Key: r.Key}, 0, 1) == 0 {
			records = append(records, r)
		}
	}
	if err := newProducer(t, cfg).Publish(within(t, 30*time.Second), records...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: group}, k.open("a"))
	k.until(t, "partition 0", func() bool { return len(k.taken[0]) == len(records) })
	r, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 0, math.MaxInt64, nil)
	if err != nil || !ok || r.Offset != int64(len(records)-1) {
		t.Errorf("LastRecord = offset %d, %v, %v; want %d", r.Offset, ok, err, len(records)-1)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A deaf listener closes every connection from a certain moment on.
type deaf struct {
	net.Listener
	now *atomic.Bool
}

func (d deaf) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil || !d.now.Load() {
			return conn, err
		}
		conn.Close()
	}
}

func TestBehind(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), numbered(name, 0, 10, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	k.next[0] = 50
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(within(t, 30*time.Second), k.open("a"))
	if !errors.Is(err, kafka.ErrBehind) || !strings.Contains(err.Error(), "50") || !strings.Contains(err.Error(), "10") {
		t.Fatalf("Run = %v, want ErrBehind with both offsets", err)
	}
}

func TestUnknownTopicEndsRun(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(within(t, 30*time.Second), newKeeper().open("a"))
	if !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), name) {
		t.Fatalf("Run = %v, want ErrUnknownTopic with the name", err)
	}
}

func TestReload(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), numbered(name, 0, 100, 1)...); err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	k.next[0] = 20
	lost := 0
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name}, k.hooked("a", func(_ context.Context, _ int, batch []kafka.Record) error {
		if lost++; lost <= 2 {
			return fmt.Errorf("save: lost the race: %w", kafka.ErrReload)
		}
		return nil
	}))
	k.until(t, "the records", func() bool { return k.count == 80 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a open 0", "a open 0", "a open 0", "a close 0"}; !slices.Equal(k.log, want) {
		t.Errorf("log %v, want %v", k.log, want)
	}
	if first := k.taken[0][0].Offset; first != 20 {
		t.Errorf("first offset %d, want 20", first)
	}
}

func TestHandlerErrorEndsRun(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 3)
	k := newKeeper()
	broken := errors.New("broken")
	c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		ended <- c.Run(t.Context(), k.hooked("a", func(_ context.Context, partition int, _ []kafka.Record) error { return broken }))
	}()
	k.until(t, "all partitions", func() bool { return len(k.owner) == 3 })
	if err := newProducer(t, cfg).Publish(t.Context(), kafka.Record{Topic: name, Key: []byte("21")}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, broken) || !strings.Contains(err.Error(), "offsets 0 to 0") {
		t.Fatalf("Run = %v, want the handler's error and where", err)
	}
	if opened, closed := k.handlers(); closed != opened-1 {
		t.Errorf("%d handlers opened and %d closed, want all but the one that failed: %v", opened, closed, k.log)
	}
}

// A member that the group gives no partition is ready to take one.
func TestJoinedWithoutPartition(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	k := newKeeper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	both := make([]*kafka.Consumer, 2)
	for i := range both {
		// When this line is logged, the group has assigned its partitions.
		assigned := make(chan struct{}, 10)
		log := slog.New(lineHandler{"kafka: partitions assigned", assigned})
		base := cfg
		base.Log = log
		c, err := kafka.NewConsumer(kafka.ConsumerConfig{Config: base, Topic: name, Group: name})
		if err != nil {
			t.Fatal(err)
		}
		if c.Joined() {
			t.Error("joined before Run")
		}
		go func() { ended <- c.Run(ctx, k.open(strconv.Itoa(i))) }()
		select {
		case <-assigned:
		case <-within(t, 30*time.Second).Done():
			t.Fatal("no generation")
		}
		both[i] = c
	}
	for i, c := range both {
		if !c.Joined() {
			t.Errorf("member %d has not joined; owners %v", i, k.owner)
		}
	}
	cancel()
	for range both {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if both[0].Joined() || both[1].Joined() {
		t.Error("joined after Run")
	}
}

// A lineHandler reports each log line with a certain message.
type lineHandler struct {
	message string
	seen    chan<- struct{}
}

func (h lineHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h lineHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h lineHandler) WithGroup(string) slog.Handler            { return h }
func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		select {
		case h.seen <- struct{}{}:
		default:
		}
	}
	return nil
}

// withoutBeginning starts a broker with a topic of one partition. Retention has removed
// its first hundred records; ten are left.
func withoutBeginning(t *testing.T) (cfg kafka.Config, name string) {
	t.Helper()
	fake, cfg := fakeCluster(t)
	name = "t"
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	old := numbered(name, 0, 100, 1)
	for i := range old {
		old[i].Time = time.Now().Add(-2 * time.Hour) // the topic keeps one
	}
	if err := p.Publish(t.Context(), old...); err != nil {
		t.Fatal(err)
	}
	fake.ApplyRetention()
	if err := p.Publish(t.Context(), numbered(name, 100, 10, 1)...); err != nil {
		t.Fatal(err)
	}
	return cfg, name
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
