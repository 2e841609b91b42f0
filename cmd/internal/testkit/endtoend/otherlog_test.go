package endtoend

import (
	"errors"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// A learner that finds a log which is not that of its model ends with status 1, says what
// is wrong and what to do, and saves nothing.
func TestAnotherLogIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		live  bool // the fault is made under a running learner; else it is started after it
		fault func(o *replicas)
		want  []string // in what it says
		never []string // not in it
	}{
		{
			name: "a gap",
			fault: func(o *replicas) {
				o.send(200)
				o.deleteRecords(0, o.end())
			},
			want: []string{"records lost to retention", "--accept-gap"},
		},
		{
			name: "more events in a topic created again",
			fault: func(o *replicas) {
				o.delete(o.topic)
				o.makeTopic()
				o.send(600)
			},
			want:  []string{"no kept version of the model follows from this log"},
			never: []string{"--accept-gap", "--accept-lost-beginning"},
		},
		{
			name: "fewer events in a topic created again",
			fault: func(o *replicas) {
				o.delete(o.topic)
				o.makeTopic()
			},
			want:  []string{"no kept version of the model follows from this log"},
			never: []string{"--accept-gap", "--accept-lost-beginning"},
		},
		{
			name: "events created again under a running learner",
			live: true,
			fault: func(o *replicas) {
				o.delete(o.topic)
				o.makeTopic()
				o.send(600)
			},
			want:  []string{"no kept version of the model follows from this log"},
			never: []string{"--accept-gap", "--accept-lost-beginning"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newReplicas(t)
			o.send(200)
			p := o.learner()
			o.awaitSaved()
			if !c.live {
				p.stop()
			}
			before := o.head()
			c.fault(o)
			if !c.live {
				p = o.learner()
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
			if after := o.head(); after.Events != before.Events || after.ModelSHA256 != before.ModelSHA256 {
				t.Errorf("it saved a model of %d events; the one before had %d", after.Events, before.Events)
			}
			if !t.Failed() {
				t.Logf("status 1: %s", last)
			}
		})
	}
}

// delete deletes a topic, and waits until it is gone.
func (o *replicas) delete(topic string) {
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
func (o *replicas) makeTopic() {
	o.t.Helper()
	if err := o.cfg.Ensure(o.t.Context(), o.topic, -1, time.Hour); err != nil {
		o.t.Fatal(err)
	}
	o.log = logOf(o.t, o.cfg, o.topic) // it knows no topic
}

// deleteRecords deletes the records of a partition below an offset, as retention does.
func (o *replicas) deleteRecords(partition int32, below int64) {
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
