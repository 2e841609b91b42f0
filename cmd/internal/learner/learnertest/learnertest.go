// Package learnertest makes the parts of a learner for tests of other packages: a topic as its
// log, and topics that it writes.
package learnertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/follow"
	"hamlet/cmd/internal/learner"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Config returns a silent learner of a topic, which writes its letters with producer and saves
// often. It ends with the test.
func Config(t testing.TB, brokers kafka.Config, topic string, producer *kafka.Producer, store learner.Store, name string, cfg model.Config) learner.Config {
	t.Helper()
	log, err := kafka.NewLog(brokers, topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return learner.Config{
		Follow: follow.Config{Log: log, Name: "topic " + topic, PollInterval: 20 * time.Millisecond}, Topic: topic,
		Letters: Appender{producer, stream.DeadLetterTopic}, Receipts: Appender{producer, stream.ReceiptTopic},
		Store: store, Model: cfg, Name: name, Writer: name, SaveEvery: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
}

// An Appender writes to one topic.
type Appender struct {
	Producer *kafka.Producer
	Topic    string
}

// Append implements stream.Appender.
func (a Appender) Append(ctx context.Context, records ...stream.Record) error {
	out := make([]kafka.Record, len(records))
	for i, r := range records {
		out[i] = kafka.Record{Topic: a.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}
	}
	return a.Producer.Publish(ctx, out...)
}
