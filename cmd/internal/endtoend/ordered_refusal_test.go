package endtoend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// A learner that finds logs which are not those of its model ends with status 1, says what
// is wrong and what to do, and saves nothing.
func TestOrderedModelRefuses(t *testing.T) {
	rounds(t, 1, 1)
	for _, c := range []struct {
		name  string
		live  bool // the fault is made under a running learner; else it is started after it
		fault func(o *ordered)
		flags []string
		want  []string // in what it says
		never []string // not in it
	}{
		{
			name: "a gap",
			fault: func(o *ordered) {
				o.send(200)
				o.deleteRecords(0, o.ends()[0])
			},
			want: []string{"records lost to retention", "offsets are gone", "--accept-gap"},
		},
		{
			name: "a foreign range",
			fault: func(o *ordered) {
				o.send(40)
				from := o.saved().Places[0].Next
				o.appendOrder(order.Record{Kind: order.Range, From: from, To: from + 1, Chain: order.Chain{1}, Gaps: o.saved().Places[0].Gaps})
			},
			want: []string{"the partition holds other records than the order log says", "partition 0"},
		},
		{
			name:  "compacted events",
			fault: func(o *ordered) { o.alter(o.topic, "cleanup.policy", "compact") },
			want:  []string{"do not fit an order log", `cleanup.policy is "compact": set it to delete`},
		},
		{
			name:  "a compacted order log",
			fault: func(o *ordered) { o.alter(o.orderTopic(), "cleanup.policy", "compact") },
			want:  []string{"do not fit an order log", `cleanup.policy is "compact": set it to delete`},
		},
		{
			name:  "an order log that is kept for a shorter time",
			fault: func(o *ordered) { o.alter(o.orderTopic(), "retention.ms", "60000") },
			want:  []string{"do not fit an order log", "retention.ms is 60000: set it to 3600000 or more"},
		},
		{
			name: "a lost order log",
			fault: func(o *ordered) {
				o.delete(o.orderTopic())
				o.send(40)
			},
			want:  []string{"log ends before the position", "ends at 0"},
			never: []string{"--accept-lost-beginning"},
		},
		{
			name: "an order log older than the checkpoint",
			fault: func(o *ordered) {
				had := o.orderLog()
				o.delete(o.orderTopic())
				o.makeOrder()
				o.appendTo(o.orderTopic(), 0, had[:len(had)/2]...)
			},
			want:  []string{"log ends before the position"},
			never: []string{"--accept-lost-beginning"},
		},
		{
			name: "an order log of another model",
			fault: func(o *ordered) {
				had := o.orderLog()
				o.delete(o.orderTopic())
				o.makeOrder()
				slices.Reverse(had)
				o.appendTo(o.orderTopic(), 0, append(had, had...)...)
			},
			want:  []string{"another log than the one absorbed"},
			never: []string{"--accept-lost-beginning"},
		},
		{
			name: "more events in a topic created again",
			fault: func(o *ordered) {
				o.delete(o.topic)
				o.makeTopic()
				o.send(600)
			},
			want:  []string{"another log than the one absorbed"},
			never: []string{"--accept-gap", "--accept-lost-beginning"},
		},
		{
			name: "fewer events in a topic created again",
			fault: func(o *ordered) {
				o.delete(o.topic)
				o.makeTopic()
			},
			want:  []string{"log ends before the position"},
			never: []string{"--accept-gap", "--accept-lost-beginning"},
		},
		{
			name: "a foreign range under a running learner",
			live: true,
			fault: func(o *ordered) {
				from := o.saved().Places[0].Next
				o.appendOrder(order.Record{Kind: order.Range, From: from, To: from + 1, Chain: order.Chain{1}})
				o.send(40)
			},
			want: []string{"the partition holds other records than the order log says", "partition 0"},
		},
		{
			name: "events created again under a running learner",
			live: true,
			fault: func(o *ordered) {
				o.delete(o.topic)
				o.makeTopic()
				o.send(600)
			},
			want:  []string{"topic was deleted and created again"},
			never: []string{"--accept-gap", "--accept-lost-beginning"},
		},
		{
			name: "an order log created again under a running learner",
			live: true,
			fault: func(o *ordered) {
				had := o.orderLog()
				o.delete(o.orderTopic())
				o.makeOrder()
				o.send(40)
				slices.Reverse(had)
				o.appendTo(o.orderTopic(), 0, append(had, had...)...)
			},
			want:  []string{"topic was deleted and created again"},
			never: []string{"--accept-lost-beginning"},
		},
		{
			name:  "a learner of models of their own",
			fault: func(*ordered) {},
			flags: []string{"--models", "partition", "--group", "other"},
			want:  []string{"in the order of a log", "--models one"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOrdered(t)
			o.send(200)
			p := o.learner()
			o.awaitSaved()
			if !c.live {
				p.stop()
			}
			before := o.head()
			c.fault(o)
			flags := slices.Clone(c.flags)
			if i := slices.Index(flags, "--group"); i >= 0 {
				flags[i+1] = "hamlet.learner." + o.model + "." + flags[i+1]
			}
			if !c.live {
				p = o.learner(flags...)
			}
			select {
			case <-p.done:
			case <-time.After(patience):
				t.Fatal("the learner did not end")
			}
			said := p.log()
			lines := strings.Split(strings.TrimSpace(said), "\n")
			last := lines[len(lines)-1]
			if code := p.cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("the status is %d, want 1", code)
			}
			for _, w := range c.want {
				if !strings.Contains(last, w) {
					t.Errorf("it does not say %q:\n%s", w, last)
				}
			}
			for _, w := range c.never {
				if strings.Contains(last, w) {
					t.Errorf("it advises %q:\n%s", w, last)
				}
			}
			if after := o.head(); after.Events != before.Events || after.ModelSHA256() != before.ModelSHA256() {
				t.Errorf("it saved a model of %d events; the one before had %d", after.Events, before.Events)
			}
			if !t.Failed() {
				t.Logf("status 1: %s", last)
			}
		})
	}
}

func (o *ordered) orderTopic() string { return order.Topic(o.model) }

// ends returns the ends of the partitions.
func (o *ordered) ends() map[int]int64 {
	o.t.Helper()
	_, end, err := kafka.Offsets(o.t.Context(), o.cfg, o.topic)
	if err != nil {
		o.t.Fatal(err)
	}
	return end
}

// orderLog returns the records of the order log as they are.
func (o *ordered) orderLog() (records []kafka.Record) {
	o.t.Helper()
	o.each(o.orderTopic(), func(r *kafka.Record) {
		records = append(records, kafka.Record{Topic: r.Topic, Key: r.Key, Value: r.Value})
	})
	return records
}

// appendOrder appends a record to the order log in the name of a stranger.
func (o *ordered) appendOrder(r order.Record) {
	o.t.Helper()
	r.Writer = "stranger"
	value, err := r.AppendProto(nil)
	if err != nil {
		o.t.Fatal(err)
	}
	o.appendTo(o.orderTopic(), 0, kafka.Record{Value: value})
}

// appendTo appends records to a partition. The producer may still know a topic that is gone.
func (o *ordered) appendTo(topic string, partition int, records ...kafka.Record) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	if err := o.producer.PublishTo(ctx, topic, partition, records...); err != nil {
		o.t.Fatal(err)
	}
}

// alter changes a setting of a topic, and waits until the broker says it back.
func (o *ordered) alter(topic, name, value string) {
	o.t.Helper()
	c := client(o.cfg)
	res, err := c.IncrementalAlterConfigs(o.t.Context(), &kafkago.IncrementalAlterConfigsRequest{
		Resources: []kafkago.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafkago.IncrementalAlterConfigsRequestConfig{{Name: name, Value: value, ConfigOperation: kafkago.ConfigOperationSet}},
		}},
	})
	if err != nil || len(res.Resources) != 1 || res.Resources[0].Error != nil {
		o.t.Fatal(err, res)
	}
	await(o.t, "the setting holds", func() bool {
		res, err := c.DescribeConfigs(o.t.Context(), &kafkago.DescribeConfigsRequest{
			Resources: []kafkago.DescribeConfigRequestResource{{ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{name}}},
		})
		return err == nil && len(res.Resources) == 1 && len(res.Resources[0].ConfigEntries) == 1 && res.Resources[0].ConfigEntries[0].ConfigValue == value
	})
}

// delete deletes a topic, and waits until it is gone.
func (o *ordered) delete(topic string) {
	o.t.Helper()
	c := client(o.cfg)
	res, err := c.DeleteTopics(o.t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{topic}})
	if err := errors.Join(err, res.Errors[topic]); err != nil {
		o.t.Fatal(err)
	}
	await(o.t, "the topic is gone", func() bool {
		offsets, err := c.ListOffsets(o.t.Context(), &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{topic: {kafkago.LastOffsetOf(0)}}})
		if err != nil {
			return true
		}
		of := offsets.Topics[topic]
		return len(of) == 0 || of[0].Error != nil
	})
}

// makeTopic makes the topic of the events again.
func (o *ordered) makeTopic() {
	o.t.Helper()
	if err := kafka.EnsureTopic(o.t.Context(), o.cfg, o.topic, orderedPartitions, -1, time.Hour); err != nil {
		o.t.Fatal(err)
	}
	o.freshProducer()
}

// makeOrder makes the order log again.
func (o *ordered) makeOrder() {
	o.t.Helper()
	if err := kafka.EnsureOrder(o.t.Context(), o.cfg, o.model, o.topic, -1); err != nil {
		o.t.Fatal(err)
	}
	o.freshProducer()
}

// deleteRecords deletes the records of a partition below an offset, as retention does.
func (o *ordered) deleteRecords(partition int32, below int64) {
	o.t.Helper()
	options := []kgo.Opt{kgo.SeedBrokers(o.cfg.Brokers...)}
	if passwords != nil {
		options = append(options, kgo.SASL(scram.Auth{User: admin, Pass: passwords[admin]}.AsSha512Mechanism()))
	}
	c, err := kgo.NewClient(options...)
	if err != nil {
		o.t.Fatal(err)
	}
	defer c.Close()
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis = 10_000
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: o.topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: below}}}}
	response, err := request.RequestWith(o.t.Context(), c)
	if err != nil || len(response.Topics) != 1 || response.Topics[0].Partitions[0].ErrorCode != 0 {
		o.t.Fatalf("%+v, %v", response, err)
	}
}
