// Package learnertest makes the parts of a learner for tests of other packages: a topic as its
// log, and topics that it writes.
package learnertest

import (
	"log/slog"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/follow"
	"hamlet/cmd/internal/learner"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Config returns a silent learner of a topic, which saves often. It ends with the test.
func Config(t testing.TB, brokers kafka.Config, topic string, store learner.Store, name string, cfg model.Config) learner.Config {
	t.Helper()
	log := Log(t, brokers, topic)
	return learner.Config{
		Follow: follow.Config{Log: log, Name: log.Name(), PollInterval: 20 * time.Millisecond}, Topic: topic,
		Letters: Log(t, brokers, stream.DeadLetterTopic), Receipts: Log(t, brokers, stream.ReceiptTopic),
		Store: store, Model: cfg, Name: name, Writer: name, SaveEvery: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
}

// Log returns the log of a topic, which is closed with the test.
func Log(t testing.TB, brokers kafka.Config, topic string) *kafka.Log {
	t.Helper()
	log, err := kafka.NewLog(brokers, topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}
