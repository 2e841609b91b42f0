package kafka_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

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

// A cancelled Append returns while its request is in flight. What is appended later waits for the
// request, because the broker may still write it. What did not travel is never sent.
func TestCancelledAppendKeepsTheOrder(t *testing.T) {
	fake, cfg := fakeCluster(t)
	ensure(t, cfg, "t", 1)
	log, err := kafka.NewLog(cfg, "t")
	if err != nil {
		t.Fatal(err)
	}
	requests, arrived, answer := 0, make(chan struct{}), make(chan struct{})
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if requests++; requests == 1 { // the others pass
			close(arrived)
			fake.SleepControl(func() { <-answer })
		}
		return nil, nil, false
	})
	first, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error, 1)
	go func() { cancelled <- log.Append(first, stream.Record{Value: []byte("1")}) }()
	<-arrived
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want context.Canceled", err)
	}
	second, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := log.Append(second, stream.Record{Value: []byte("2")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append = %v, want its deadline: a request is in flight", err)
	}
	close(answer)
	if err := log.Append(within(t, 30*time.Second), stream.Record{Value: []byte("3")}); err != nil {
		t.Error(err)
	}
	records, _, err := log.Read(within(t, 30*time.Second), 0, stream.Limit{}, 0)
	if err != nil || len(records) != 2 || string(records[0].Value) != "1" || string(records[1].Value) != "3" {
		t.Errorf("%d records, %v; want 1 and 3: %v", len(records), err, records)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// Close ends a request that nobody waits for.
func TestCloseEndsTheRequestInFlight(t *testing.T) {
	fake, cfg := fakeCluster(t)
	ensure(t, cfg, "t", 1)
	log, err := kafka.NewLog(cfg, "t")
	if err != nil {
		t.Fatal(err)
	}
	arrived, answer := make(chan struct{}), make(chan struct{})
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(arrived)
		fake.SleepControl(func() { <-answer })
		return nil, nil, false
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(0, func() { <-arrived; cancel() })
	if err := log.Append(ctx, stream.Record{Value: []byte("1")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append = %v, want context.Canceled", err)
	}
	began := time.Now()
	if err := log.Close(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("Close = %v after %v", err, time.Since(began))
	}
	close(answer)
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
