package kafka_test

import (
	"net"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"hamlet/stream"
	"hamlet/stream/embedded/loopback"
	"hamlet/stream/kafka"
	"hamlet/stream/logtest"
)

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
		ensure(t, cfg, name, 1)
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
				ensure(t, cfg, name, 1)
			},
			TooLarge: 1 << 20,
		}
	})
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
