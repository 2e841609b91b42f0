package embedded

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxPartitions is what Kafka makes in one request.
const maxPartitions = 10_000

// invalidPartitions is Kafka's error code for a number of partitions that it
// refuses.
const invalidPartitions = 37

// boundPartitions makes c refuse topics of more partitions than Kafka would make.
// kfake makes as many as it is told, and does nothing else meanwhile: two billion
// cost all memory.
func boundPartitions(c *kfake.Cluster) {
	reason := fmt.Sprintf("at most %d partitions", maxPartitions)
	c.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		request := r.(*kmsg.CreateTopicsRequest)
		if !slices.ContainsFunc(request.Topics, func(t kmsg.CreateTopicsRequestTopic) bool { return t.NumPartitions > maxPartitions }) {
			return nil, nil, false
		}
		c.KeepControl()
		response := request.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, t := range request.Topics {
			refused := kmsg.NewCreateTopicsResponseTopic()
			refused.Topic, refused.ErrorCode, refused.ErrorMessage = t.Topic, invalidPartitions, &reason
			response.Topics = append(response.Topics, refused)
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
			refused := kmsg.NewCreatePartitionsResponseTopic()
			refused.Topic, refused.ErrorCode, refused.ErrorMessage = t.Topic, invalidPartitions, &reason
			response.Topics = append(response.Topics, refused)
		}
		return response, nil, true
	})
}
