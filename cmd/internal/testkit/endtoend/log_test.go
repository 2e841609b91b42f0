package endtoend

import (
	"testing"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// logOf returns the log of a topic, which is closed with the test.
func logOf(t *testing.T, cfg kafka.Config, topic string) *kafka.Log {
	t.Helper()
	log, err := kafka.NewLog(cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// boundsOf returns where a topic begins and ends.
func boundsOf(t *testing.T, cfg kafka.Config, topic string) stream.Bounds {
	t.Helper()
	log := logOf(t, cfg, topic)
	defer log.Close()
	b, err := follow.Bounds(t.Context(), follow.Topic(log, cfg))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// allOf returns all records of a topic.
func allOf(t *testing.T, cfg kafka.Config, topic string) []stream.Record {
	t.Helper()
	b := boundsOf(t, cfg, topic)
	return recordsOf(t, cfg, topic, b.First, b.End)
}

// recordsOf returns the records of a topic with the offsets first to end−1.
func recordsOf(t *testing.T, cfg kafka.Config, topic string, first, end int64) (records []stream.Record) {
	t.Helper()
	log := logOf(t, cfg, topic)
	defer log.Close()
	err := follow.Range(t.Context(), follow.Topic(log, cfg), first, end, func(r *stream.Record) error {
		records = append(records, *r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}
