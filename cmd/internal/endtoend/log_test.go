package endtoend

import (
	"context"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
)

// readPartition reads a partition's records from first up to end.
func readPartition(t *testing.T, topic string, partition int, first, end int64) []kafka.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: []string{kafkaAddr}, Topic: topic, Partition: partition, MaxWait: 100 * time.Millisecond,
		Dialer: &kafkago.Dialer{Timeout: patience, SASLMechanism: kafkaAs(t, admin).SASL},
	})
	defer reader.Close()
	if err := reader.SetOffset(first); err != nil {
		t.Fatal(err)
	}
	var records []kafka.Record
	for next := first; next < end; {
		m, err := reader.FetchMessage(ctx)
		if err != nil {
			t.Fatalf("read %s/%d at %d: %v", topic, partition, next, err)
		}
		r := kafka.Record{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			r.Headers = append(r.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		records = append(records, r)
		next = m.Offset + 1
	}
	return records
}
