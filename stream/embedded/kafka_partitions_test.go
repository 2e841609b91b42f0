package embedded

import (
	"errors"
	"testing"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/embedded/topics"
)

// A huge number of partitions is refused each time, and the broker goes on.
func TestKafkaRefusesTooManyPartitions(t *testing.T) {
	t.Parallel()
	k, cfg := startTestKafka(t, KafkaOptions{Topics: []string{"events"}})
	for range 2 {
		client := &kafkago.Client{Addr: kafkago.TCP(k.Addr())}
		many, err := client.CreateTopics(t.Context(), &kafkago.CreateTopicsRequest{
			Topics: []kafkago.TopicConfig{{Topic: "many", NumPartitions: 2_000_000_000, ReplicationFactor: 1}},
		})
		if err != nil || !errors.Is(many.Errors["many"], kafkago.InvalidPartitionNumber) {
			t.Errorf("2,000,000,000 partitions: %v, %v", many, err)
		}
		r, err := client.CreatePartitions(t.Context(), &kafkago.CreatePartitionsRequest{
			Topics: []kafkago.TopicPartitionsConfig{{Name: "events", Count: 2_000_000_000}},
		})
		if err != nil || !errors.Is(r.Errors["events"], kafkago.InvalidPartitionNumber) {
			t.Errorf("2,000,000,000 partitions more: %v, %v", r, err)
		}
	}
	topics.Make(t, cfg, "few", 3)
}
