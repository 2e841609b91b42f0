package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream/embedded"
	"hamlet/stream/embedded/loopback"
	"hamlet/stream/kafka"
)

// Reference: org.apache.kafka.common.utils.UtilsTest.testMurmur2; the partition
// of a key is the hash's lower 31 bits modulo the number of partitions.
func TestKeysGoWhereJavaSendsThem(t *testing.T) {
	hashes := map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	}
	cfg, name := cluster(t), topic(t)
	const partitions = 7
	ensure(t, cfg, name, partitions)
	p := newProducer(t, cfg)
	for key := range hashes {
		if err := p.Publish(t.Context(), kafka.Record{Topic: name, Key: []byte(key), Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	for key, records := range readAll(t, cfg, name) {
		if want := int(uint32(hashes[key])&0x7fffffff) % partitions; records[0].Partition != want {
			t.Errorf("key %q: partition %d, want %d", key, records[0].Partition, want)
		}
		delete(hashes, key)
	}
	if len(hashes) > 0 {
		t.Errorf("not read: %v", hashes)
	}
}

// readAll returns the records of a topic by key, in order per partition.
func readAll(t *testing.T, cfg kafka.Config, name string) map[string][]kafka.Record {
	t.Helper()
	first, end, err := kafka.Offsets(within(t, 30*time.Second), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper()
	stop := start(t, kafka.ConsumerConfig{Config: cfg, Topic: name, Group: name + "-all"}, k.open("all"))
	k.until(t, "the whole topic", func() bool {
		for p, e := range end {
			if r := k.taken[p]; e > first[p] && (len(r) == 0 || r[len(r)-1].Offset < e-1) {
				return false
			}
		}
		return true
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	byKey := map[string][]kafka.Record{}
	for _, records := range k.taken {
		for _, r := range records {
			byKey[string(r.Key)] = append(byKey[string(r.Key)], r)
		}
	}
	return byKey
}

func TestRecordComesBackWhole(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	sent := kafka.Record{
		Topic: name, Key: []byte("k"), Value: []byte{0, 1, 255}, Time: time.UnixMilli(time.Now().UnixMilli()),
		Headers: []kafka.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte{}}, {Key: "b", Value: []byte("3")}},
	}
	if err := p.Publish(t.Context(), sent, kafka.Record{Topic: name}); err != nil {
		t.Fatal(err)
	}
	byKey := readAll(t, cfg, name)
	got := byKey["k"][0]
	if string(got.Value) != string(sent.Value) || !got.Time.Equal(sent.Time) || got.HighWatermark < 1 {
		t.Errorf("got %+v, want %+v", got, sent)
	}
	if !slices.EqualFunc(got.Headers, sent.Headers, func(a, b kafka.Header) bool {
		return a.Key == b.Key && string(a.Value) == string(b.Value)
	}) {
		t.Errorf("headers %v, want %v", got.Headers, sent.Headers)
	}
	if empty := byKey[""][0]; empty.Key != nil || len(empty.Value) != 0 {
		t.Errorf("empty record came back as %+v", empty)
	}
}

// A record that is broadcast is in every partition once, whatever its key.
func TestBroadcast(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	const partitions = 5
	ensure(t, cfg, name, partitions)
	p := newProducer(t, cfg)
	n, err := p.Broadcast(t.Context(), kafka.Record{Topic: name, Key: []byte("k"), Value: []byte("v")})
	if err != nil || n != partitions {
		t.Fatalf("%d partitions, %v", n, err)
	}
	in := map[int]int{}
	for _, r := range readAll(t, cfg, name)["k"] {
		in[r.Partition]++
	}
	for id := range partitions {
		if in[id] != 1 {
			t.Errorf("partition %d has the record %d times", id, in[id])
		}
	}
	if _, err := p.Broadcast(t.Context(), kafka.Record{Topic: name, Value: make([]byte, 2<<20)}); !errors.Is(err, kafka.ErrTooLarge) {
		t.Errorf("2 MiB: error %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	small := kafka.Record{Topic: name, Key: []byte("s"), Value: []byte("small")}
	// Noise, which is no smaller and soon done when compressed.
	noise := make([]byte, 3<<19)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	large := kafka.Record{Topic: name, Key: []byte("l"), Value: noise}

	err := newProducer(t, cfg).Publish(t.Context(), small, large)
	if !errors.Is(err, kafka.ErrTooLarge) || !strings.Contains(err.Error(), "record 2 of 2") {
		t.Errorf("our limit: %v", err)
	}
	cfg.MaxRecordBytes = 8 << 20
	err = newProducer(t, cfg).Publish(t.Context(), small, small, large, small)
	if !errors.Is(err, kafka.ErrTooLarge) || !strings.Contains(err.Error(), "2 of 4 records acknowledged") {
		t.Errorf("the broker's limit: %v", err)
	}
	if got := len(readAll(t, cfg, name)["s"]); got != 2 {
		t.Errorf("%d small records are in the log, want the 2 before the large one", got)
	}
}

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	p := newProducer(t, cfg)
	err := p.Publish(t.Context(), kafka.Record{Topic: name})
	if !errors.Is(err, kafka.ErrUnknownTopic) || !strings.Contains(err.Error(), name) {
		t.Errorf("Publish = %v, want ErrUnknownTopic with the name", err)
	}
	if err := p.Publish(t.Context(), kafka.Record{}); err == nil {
		t.Error("a record without a topic was published")
	}
}

// A topic can be created after the producer has cached the cluster's metadata.
func TestTopicCreatedLater(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	if err := p.Publish(t.Context(), kafka.Record{Topic: name}); err != nil {
		t.Fatal(err)
	}
	later := name + "-later"
	ensure(t, cfg, later, 1)
	if err := p.Publish(t.Context(), kafka.Record{Topic: later}); err != nil {
		t.Error(err)
	}
}

func TestPublishConcurrently(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	p := newProducer(t, cfg)
	const writers, each = 32, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < each; i += 5 {
				var records []kafka.Record
				for j := i; j < i+5; j++ {
					records = append(records, kafka.Record{Topic: name, Key: []byte(strconv.Itoa(w)), Value: []byte(strconv.Itoa(j))})
				}
				if err := p.Publish(t.Context(), records...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	byKey := readAll(t, cfg, name)
	for w := range writers {
		var got []string
		for _, r := range byKey[strconv.Itoa(w)] {
			got = append(got, string(r.Value))
		}
		for i := range each {
			if i >= len(got) || got[i] != strconv.Itoa(i) {
				t.Fatalf("writer %d: got %v", w, got)
			}
		}
	}
}

// A cancelled call must not remove another call's records.
func TestCancelledPublishLeavesOthersAlone(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	p := newProducer(t, cfg)
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := map[string]bool{}
	for i := range 200 {
		wg.Go(func() {
			ctx := t.Context()
			if i%2 == 1 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*50*time.Microsecond)
				defer cancel()
			}
			key := strconv.Itoa(i)
			err := p.Publish(ctx, kafka.Record{Topic: name, Key: []byte(key), Value: words(2000, uint64(i))})
			if err == nil {
				mu.Lock()
				acked[key] = true
				mu.Unlock()
			} else if i%2 == 0 {
				t.Errorf("%d: %v", i, err)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: %v, want a deadline exceeded", i, err)
			}
		})
	}
	wg.Wait()
	byKey := readAll(t, cfg, name)
	for key := range acked {
		if len(byKey[key]) == 0 {
			t.Errorf("%s was acknowledged and is not in the log", key)
		}
	}
}

func TestPublishWithoutBroker(t *testing.T) {
	t.Parallel()
	k, err := embedded.StartKafka(embedded.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	log := slog.New(slog.NewTextHandler(lineFunc(func(line []byte) {
		// Not where it counts two failures, as on a machine that stood still: the first one is
		// of a connection that was open.
		if bytes.Contains(line, []byte("publishing again")) && !bytes.HasSuffix(line, []byte(" times=2\n")) {
			cancel(enough)
		}
	}), nil))
	p := newProducer(t, kafka.Config{Brokers: []string{k.Addr()}, Log: log})
	if err := p.Publish(t.Context(), kafka.Record{Topic: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	err = p.Publish(ctx, kafka.Record{Topic: "t"})
	if !errors.Is(err, enough) || !strings.Contains(err.Error(), "0 of 1 records") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Publish = %v, want why it ended and the last failure", err)
	}
}

// A lineFunc hears every line of a log.
type lineFunc func(line []byte)

func (f lineFunc) Write(line []byte) (int, error) {
	f(line)
	return len(line), nil
}

func TestCloseEndsPublish(t *testing.T) {
	k, err := embedded.StartKafka(embedded.KafkaOptions{Addr: loopback.Hold(t), Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := kafka.NewProducer(kafka.Config{Brokers: []string{k.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), kafka.Record{Topic: "t"}); err != nil {
		t.Fatal(err)
	}
	k.Close()
	ended := make(chan error)
	go func() { ended <- p.Publish(context.Background(), kafka.Record{Topic: "t"}) }()
	go p.Close()
	if err := <-ended; !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("under way: %v, want ErrClosed", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Publish(context.Background(), kafka.Record{Topic: "t"}); !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("afterwards: %v, want ErrClosed", err)
	}
}

func TestConfigErrors(t *testing.T) {
	_, err := kafka.NewProducer(kafka.Config{Brokers: []string{"localhost"}, MaxRecordBytes: -1})
	if err == nil || !strings.Contains(err.Error(), `"localhost" is not host:port`) || !strings.Contains(err.Error(), "max record bytes") {
		t.Errorf("NewProducer = %v, want both faults", err)
	}
	_, err = kafka.NewConsumer(kafka.ConsumerConfig{SessionTimeout: time.Second, Drain: time.Second})
	for _, want := range []string{"brokers", "topic", "group", "drain"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewConsumer = %v, want it to name %s", err, want)
		}
	}
}

func ExampleProducer() {
	broker, err := embedded.StartKafka(embedded.KafkaOptions{Topics: []string{"hamlet.events.default"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()
	producer, err := kafka.NewProducer(kafka.Config{Brokers: []string{broker.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer producer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = producer.Publish(ctx,
		kafka.Record{Topic: "hamlet.events.default", Key: []byte("example.org/alice"), Value: []byte("an event")},
		kafka.Record{Topic: "hamlet.events.default", Key: []byte("example.org/bob"), Value: []byte("another")})
	fmt.Println("acknowledged:", err == nil)
	// Output: acknowledged: true
}

// Reach uses the existing connections.
func TestReach(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int64
	_, cfg := fakeCluster(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return counting{l, &dialled}, err
	}))
	name := topic(t)
	ensure(t, cfg, name, 2)
	p := newProducer(t, cfg)
	if err := p.Publish(within(t, 30*time.Second), numbered(name, 0, 10, 9)...); err != nil {
		t.Fatal(err)
	}
	reach := func() {
		t.Helper()
		if err := p.Reach(within(t, 30*time.Second), name); err != nil {
			t.Fatal(err)
		}
	}
	reach()
	before := dialled.Load()
	for range 20 {
		reach()
	}
	// Reach sends four requests at a time: two ends of two partitions. It opens no more
	// connections than that.
	if n := dialled.Load(); n > before+4 {
		t.Errorf("%d connections, %d more than before; want at most 4 more", n, n-before)
	}
	if err := p.Reach(within(t, 30*time.Second), "none"); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("%v, want ErrUnknownTopic", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Reach(within(t, 30*time.Second), name); !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

type counting struct {
	net.Listener
	accepted *atomic.Int64
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}
