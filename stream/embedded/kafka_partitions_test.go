package embedded

import (
	"errors"
	"testing"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/kafka"
)

// A huge number of partitions is refused each time, and the broker goes on.
func TestKafkaRefusesTooManyPartitions(t *testing.T) {
	t.Parallel()
	k, cfg := startTestKafka(t, KafkaOptions{Topics: []string{"events"}})
	for range 2 {
		err := kafka.EnsureTopic(t.Context(), cfg, "many", 2_000_000_000, 1, 0)
		if !errors.Is(err, kafkago.InvalidPartitionNumber) {
			t.Errorf("2,000,000,000 partitions: %v", err)
		}
		client := &kafkago.Client{Addr: kafkago.TCP(k.Addr())}
		r, err := client.CreatePartitions(t.Context(), &kafkago.CreatePartitionsRequest{
			Topics: []kafkago.TopicPartitionsConfig{{Name: "events", Count: 2_000_000_000}},
		})
		if err != nil || !errors.Is(r.Errors["events"], kafkago.InvalidPartitionNumber) {
			t.Errorf("2,000,000,000 partitions more: %v, %v", r, err)
		}
	}
	if err := kafka.EnsureTopic(t.Context(), cfg, "few", 3, 1, 0); err != nil {
		t.Error(err)
	}
}
