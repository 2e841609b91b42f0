package embedded

import (
	"fmt"
	"slices"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxPartitions is the most that Kafka creates in one request.
const maxPartitions = 10_000

// boundPartitions makes c refuse topics of more than maxPartitions partitions, as
// Kafka does. kfake would create two billion.
func boundPartitions(c *kfake.Cluster) {
	const code = int16(kafkago.InvalidPartitionNumber)
	reason := fmt.Sprintf("at most %d partitions", maxPartitions)
	c.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		request := r.(*kmsg.CreateTopicsRequest)
		if !slices.ContainsFunc(request.Topics, func(t kmsg.CreateTopicsRequestTopic) bool { return t.NumPartitions > maxPartitions }) {
			return nil, nil, false
		}
		c.KeepControl()
		response := request.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, t := range request.Topics {
			response.Topics = append(response.Topics, kmsg.CreateTopicsResponseTopic{
				Topic: t.Topic, ErrorCode: code, ErrorMessage: &reason, NumPartitions: -1, ReplicationFactor: -1,
			})
		}
		return response, nil, true
	})
	c.ControlKey(int16(kmsg.CreatePartitions), func(r kmsg.Request) (kmsg.Response, error, bool) {
		request := r.(*kmsg.CreatePartitionsRequest)
		if !slices.ContainsFunc(request.Topics, func(t kmsg.CreatePartitionsRequestTopic) bool { return t.Count > maxPartitions }) {
			return nil, nil, false
		}
		c.KeepControl()
		response := request.ResponseKind().(*kmsg.CreatePartitionsResponse)
		for _, t := range request.Topics {
			response.Topics = append(response.Topics, kmsg.CreatePartitionsResponseTopic{Topic: t.Topic, ErrorCode: code, ErrorMessage: &reason})
		}
		return response, nil, true
	})
}
