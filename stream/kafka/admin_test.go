package kafka_test

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"hamlet/stream"
	"hamlet/stream/kafka"
)

func TestEnsureTopicLeavesAnExistingOne(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 3)
	ensure(t, cfg, name, 5)
	first, end, err := kafka.Offsets(within(t, 30*time.Second), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 3 || len(end) != 3 {
		t.Errorf("%d partitions, want the 3 of its creation", len(first))
	}
	if err := kafka.EnsureTopic(t.Context(), cfg, name, 0, 1, 0); err == nil {
		t.Error("a topic without partitions was accepted")
	}
	if err := kafka.EnsureTopic(within(t, 30*time.Second), cfg, "a b/c", 1, 1, 0); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("a bad name: %v, want ErrUnknownTopic", err)
	}
}

func TestEnsureTopicRetention(t *testing.T) {
	cfg := cluster(t)
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	for _, c := range []struct {
		retention time.Duration
		want      string
	}{{90 * 24 * time.Hour, "7776000000"}, {-1, "-1"}} {
		name := topic(t)
		if err := kafka.EnsureTopic(within(t, 30*time.Second), cfg, name, 1, 0, c.retention); err != nil {
			t.Fatal(err)
		}
		res, err := client.DescribeConfigs(t.Context(), &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: name, ConfigNames: []string{"retention.ms"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if entries := res.Resources[0].ConfigEntries; len(entries) != 1 || entries[0].ConfigValue != c.want {
			t.Errorf("retention %v: got %+v, want %s ms", c.retention, entries, c.want)
		}
	}
}

func TestLastRecord(t *testing.T) {
	t.Parallel()
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 2)
	if _, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 0, math.MaxInt64, nil); ok || err != nil {
		t.Errorf("empty: %v, %v", ok, err)
	}
	p := newProducer(t, cfg)
	for i := range 3 {
		if err := p.Publish(t.Context(), numbered(name, 1000*i, 1000, 9)...); err != nil {
			t.Fatal(err)
		}
	}
	_, end, err := kafka.Offsets(within(t, 30*time.Second), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for partition := range 2 {
		r, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, partition, math.MaxInt64, nil)
		if !ok || err != nil || r.Offset != end[partition]-1 || r.Partition != partition || r.Topic != name {
			t.Fatalf("partition %d: %+v, %v, %v; want offset %d", partition, r, ok, err, end[partition]-1)
		}
		newest = max(newest, string(r.Value))
	}
	if newest != "2999" {
		t.Errorf("newest value %s, want 2999", newest)
	}
	if _, _, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 7, math.MaxInt64, nil); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("a partition that is not there: %v, want ErrUnknownTopic", err)
	}
}

func hasHeader(key string) func(kafka.Record) bool {
	return func(r kafka.Record) bool { _, ok := stream.FindHeader(r.Headers, key); return ok }
}

func TestLastRecordWanted(t *testing.T) {
	cfg, name := cluster(t), topic(t)
	ensure(t, cfg, name, 1)
	const n = 3000
	records := numbered(name, 0, n, 9)
	for _, i := range []int{5, 2000, 2500, n - 2} {
		records[i].Headers = []kafka.Header{{Key: "other", Value: []byte("x")}, {Key: "mark", Value: []byte("y")}}
	}
	records[n-1].Headers = []kafka.Header{{Key: "other"}}
	p := newProducer(t, cfg)
	for part := range slices.Chunk(records, 700) {
		if err := p.Publish(t.Context(), part...); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		most int64
		want int64 // the offset, −1 for none
	}{
		{1, -1}, {2, n - 2}, {n, n - 2}, {math.MaxInt64, n - 2}, {0, -1}, {-1, -1},
	} {
		r, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 0, c.most, hasHeader("mark"))
		if err != nil || ok != (c.want >= 0) || ok && (r.Offset != c.want || string(r.Value) != strconv.FormatInt(c.want, 10)) {
			t.Errorf("among the last %d: offset %d, %v, %v; want %d", c.most, r.Offset, ok, err, c.want)
		}
	}
	// The wanted record is several windows before the end.
	if err := p.Publish(t.Context(), numbered(name, n, 1500, 9)...); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]bool{1501: false, 1502: true, 1503: true} {
		r, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 0, most, hasHeader("mark"))
		if err != nil || ok != want || ok && r.Offset != n-2 {
			t.Errorf("among the last %d: offset %d, %v, %v; want %v", most, r.Offset, ok, err, want)
		}
	}
	if _, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 0, math.MaxInt64, hasHeader("no such")); ok || err != nil {
		t.Errorf("a header that is nowhere: %v, %v", ok, err)
	}
	without := func(r kafka.Record) bool { _, ok := stream.FindHeader(r.Headers, "mark"); return !ok && r.Offset < n-1 }
	if r, ok, err := kafka.LastRecord(within(t, 30*time.Second), cfg, name, 0, math.MaxInt64, without); !ok || err != nil || r.Offset != n-3 {
		t.Errorf("without the header: offset %d, %v, %v; want %d", r.Offset, ok, err, n-3)
	}
}

// A cluster that takes nearly a second for each answer is slow, not unreachable.
func TestSlowCluster(t *testing.T) {
	t.Parallel()
	var busy sync.RWMutex
	t.Cleanup(func() { // once the cluster is closed: its goroutines end with their writes
		busy.Lock()
		defer busy.Unlock()
	})
	_, cfg := fakeCluster(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return slow{l, &busy}, err
	}))
	if _, _, err := kafka.Offsets(within(t, 30*time.Second), cfg, "none"); !errors.Is(err, kafka.ErrUnknownTopic) {
		t.Errorf("Offsets: %v, want the cluster's answer that there is no such topic", err)
	}
}

type slow struct {
	net.Listener
	busy *sync.RWMutex // held for reading while a connection is written to
}

func (s slow) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &slowConn{Conn: conn, busy: s.busy}
	c.open, c.cut = context.WithCancel(context.Background())
	return c, nil
}

type slowConn struct {
	net.Conn
	busy *sync.RWMutex
	open context.Context // ends at Close
	cut  context.CancelFunc
}

// Write is slow, unless the connection is closed.
func (c *slowConn) Write(b []byte) (int, error) {
	c.busy.RLock()
	defer c.busy.RUnlock()
	late, cancel := context.WithTimeout(c.open, 600*time.Millisecond)
	defer cancel()
	<-late.Done()
	return c.Conn.Write(b)
}

func (c *slowConn) Close() error {
	c.cut()
	return c.Conn.Close()
}
