package kafka_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/logtest"
	"hamlet/stream/servertest/loopback"
	"hamlet/stream/servertest/topics"
)

// A topic keeps the laws of a log, on the broker for tests and on a real one.
func TestLogKeepsTheLaws(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Subject {
		var cfg kafka.Config
		var restart func(*testing.T)
		var away func(*testing.T) func()
		if os.Getenv("HAMLET_KAFKA") != "" {
			cfg = cluster(t)
		} else {
			addr, dir := loopback.Hold(t), t.TempDir()
			var fake *kfake.Cluster
			run := func() {
				fake, cfg = fakeCluster(t, kfake.DataDir(dir), kfake.ListenFn(func(network, _ string) (net.Listener, error) {
					return net.Listen(network, addr)
				}))
			}
			run()
			restart = func(*testing.T) { fake.Close(); run() }
			away = func(*testing.T) func() { fake.Close(); return run }
		}
		name := topic(t)
		ensure(t, cfg, name)
		cfg.Seen = new(kafka.SeenTopics)
		log := newLog(t, cfg, name)
		return logtest.Subject{
			Log: log, Appender: log,
			Open: func(t *testing.T) (stream.Log, stream.Appender) {
				other := newLog(t, cfg, name)
				return other, other
			},
			Restart: restart, Away: away,
			Retain: func(t *testing.T) int64 { return deleteRecords(t, cfg, name, 7) },
			Replace: func(t *testing.T) {
				remove(t, cfg, name)
				ensure(t, cfg, name)
			},
			TooLarge: 1 << 20,
		}
	})
}

// A topic of several partitions is no log, and each of its partitions is one. The others are used
// though a leader cannot be reached.
func TestSeveralPartitions(t *testing.T) {
	var listening atomic.Int64
	var deafness atomic.Bool
	fake, cfg := fakeCluster(t, kfake.NumBrokers(2), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if listening.Add(1) == 1 {
			return l, err
		}
		return deaf{l, &deafness}, err
	}))
	cfg.Brokers = cfg.Brokers[:1]
	topics.Make(t, cfg, "t", 2)
	if _, err := newLog(t, cfg, "t").Bounds(within(t, 30*time.Second)); !errors.Is(err, kafka.ErrPartitions) {
		t.Errorf("Bounds = %v, want ErrPartitions", err)
	}
	whole := newLog(t, cfg, "t")
	for range 2 {
		err := whole.Append(within(t, 30*time.Second), numbered(0, 3)...)
		if !errors.Is(err, kafka.ErrPartitions) || !strings.Contains(err.Error(), "0 of 3 records acknowledged") {
			t.Errorf("Append = %v, want ErrPartitions", err)
		}
	}
	deafness.Store(true)
	for partition := range int32(2) {
		if err := fake.MoveTopicPartition("t", partition, partition); err != nil {
			t.Fatal(err)
		}
	}
	log, err := kafka.NewPartition(cfg, "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	add(t, log, numbered(0, 20)...)
	b, err := log.Bounds(within(t, 30*time.Second))
	if got := len(all(t, log)); got != 20 || b.End != 20 || err != nil {
		t.Errorf("%d records of a partition that ends at %d, %v; want 20", got, b.End, err)
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

// A log is read and written although the first broker that is named is down.
func TestFirstBrokerDown(t *testing.T) {
	_, cfg := fakeCluster(t)
	ensure(t, cfg, "t")
	cfg.Brokers = append([]string{"127.0.0.1:1"}, cfg.Brokers...)
	log := newLog(t, cfg, "t")
	add(t, log, numbered(0, 10)...)
	if got := len(all(t, log)); got != 10 {
		t.Errorf("%d records, want 10", got)
	}
}

// What compaction took leaves holes.
func TestCompaction(t *testing.T) {
	fake, cfg := fakeCluster(t)
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers[0]), Transport: transport}
	res, err := client.CreateTopics(t.Context(), &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{{
		Topic: "t", NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: []kafkago.ConfigEntry{
			{ConfigName: "cleanup.policy", ConfigValue: "compact"},
			{ConfigName: "segment.bytes", ConfigValue: "1000"},
			{ConfigName: "min.cleanable.dirty.ratio", ConfigValue: "0"},
		},
	}}})
	if err != nil || res.Errors["t"] != nil {
		t.Fatal(err, res.Errors)
	}
	log := newLog(t, cfg, "t")
	records := numbered(0, 100) // of one key, but for one
	records[10].Key = []byte("another")
	for i := range records {
		add(t, log, records[i])
	}
	fake.Compact()
	left := all(t, log)
	n := len(left)
	if n < 3 || n > 50 || left[0].Offset != 10 || left[1].Offset < 50 || left[n-1].Offset != 99 {
		t.Errorf("%d of 100 records are left: %v", n, left)
	}
	for _, r := range left {
		if string(r.Value) != fmt.Sprint(r.Offset) {
			t.Errorf("record %s is at offset %d", r.Value, r.Offset)
		}
	}
}

// remove deletes a topic.
func remove(t *testing.T, cfg kafka.Config, name string) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Transport: &kafkago.Transport{DialTimeout: 30 * time.Second, SASL: cfg.SASL}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	res, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{name}})
	if err != nil || res.Errors[name] != nil {
		t.Fatal(err, res.Errors)
	}
}

// deleteRecords deletes the records of a topic below an offset, which it returns.
func deleteRecords(t *testing.T, cfg kafka.Config, name string, first int64) int64 {
	t.Helper()
	options := []kgo.Opt{kgo.SeedBrokers(cfg.Brokers...)}
	if user := os.Getenv("HAMLET_KAFKA_USER"); user != "" {
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: os.Getenv("HAMLET_KAFKA_PASSWORD")}.AsSha512Mechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis = 10_000
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: first}}}}
	res, err := request.RequestWith(t.Context(), client)
	if err != nil || res.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(err, res)
	}
	return first
}
