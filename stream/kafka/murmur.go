package kafka

import kafkago "github.com/segmentio/kafka-go"

// PartitionOf returns which of a topic's partitions, 0 to partitions−1, a record
// with this key goes to, by murmur2 as Java's clients. The key is not empty and
// partitions is positive.
func PartitionOf(key []byte, partitions int) int {
	ids := make([]int, partitions)
	for i := range ids {
		ids[i] = i
	}
	return kafkago.Murmur2Balancer{}.Balance(kafkago.Message{Key: key}, ids...)
}
