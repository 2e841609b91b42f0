// Package learnertest makes the parts of a learner for tests of other packages: a topic as its
// log, and topics that it writes.
package learnertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/learner"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Config returns a silent learner of a topic, which saves often. It ends with the test.
func Config(t testing.TB, brokers kafka.Config, topic string, store learner.Store, name string,
	cfg model.Config) learner.Config {
	t.Helper()
	log := Log(t, brokers, topic)
	return learner.Config{
		Follow: follow.Config{Log: log, Name: log.Name(), PollInterval: 20 * time.Millisecond}, Topic: topic,
		Letters: Log(t, brokers, stream.DeadLetterTopic), Receipts: Log(t, brokers, stream.ReceiptTopic),
		Store: store, Model: cfg, Name: name, Writer: name, SaveEvery: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
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

// WithNumerics returns the bytes of a model that say that they are of other numerics.
func WithNumerics(t testing.TB, b []byte, numerics string) []byte {
	t.Helper()
	here := fmt.Appendf(nil, `{"numerics":%q`, model.CurrentNumerics())
	there := fmt.Appendf(nil, `{"numerics":%q`, numerics)
	if len(here) != len(there) || !bytes.Contains(b, here) {
		t.Fatal("the model's bytes do not say their numerics")
	}
	b = bytes.Replace(b, here, there, 1)
	n := len(b) - 8
	binary.LittleEndian.PutUint64(b[n:], xxhash.Sum64(b[:n]))
	if m, err := model.Restore(b); err != nil || m.Numerics() != numerics {
		t.Fatalf("numerics cannot be changed: %v", err)
	}
	return b
}
