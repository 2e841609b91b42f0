package learner

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
)

func (r *rig) client() *kafkago.Client {
	transport := &kafkago.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &kafkago.Client{Addr: kafkago.TCP(r.kafka.Brokers...), Transport: transport}
}

// A learner does not learn another log on top of its model, even if that has the same
// offsets.
func TestAReplacedTopicIsRefused(t *testing.T) {
	r := newRig(t, 1)
	records, m := texts(t, r.topic, 300)
	r.produce(records...)
	r.learn(r.config("g"), 300)
	before := r.head()
	if before.ModelSHA256() != sum(t, m) {
		t.Fatal("the model differs")
	}

	r.replaceTopic()
	others := otherTexts(r.topic, 400)
	r.produce(others...)
	for range 2 { // and again: a refusal changes nothing
		err := r.try(r.config("g"), 400)
		if !errors.Is(err, kafka.ErrReplaced) {
			t.Fatalf("got %v, want ErrReplaced", err)
		}
		for _, want := range []string{"partition 0", r.topic, "300", "299", "created again", "empty state"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if after := r.head(); after.ModelSHA256() != before.ModelSHA256() || after.Position != before.Position {
			t.Errorf("the head moved from %v to %v", before.Position, after.Position)
		}
	}

	// A new topic with the same records counts as the same log.
	r.replaceTopic()
	r.produce(slices.Concat(records, others)...)
	r.learn(r.config("g"), 700)
	if got := r.head(); got.Position.Next != 700 || got.Events != 700 {
		t.Errorf("%d events at offset %d, want 700 at 700", got.Events, got.Position.Next)
	}
}

// The same holds for a learner that is running, before and after the new topic is longer.
func TestATopicReplacedUnderALearner(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	records, m := texts(t, r.topic, 300)
	r.produce(records...)
	l, err := New(r.config("g"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	for l.Status()[0].SavedEnd < 300 {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	r.replaceTopic()
	others := otherTexts(r.topic, 600)
	r.produce(others[:200]...)
	r.produce(others[200:]...)
	go func() { // as it would come to its end
		for l.Status()[0].Next < 600 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if err := <-done; !errors.Is(err, kafka.ErrReplaced) {
		t.Errorf("Run = %v, want ErrReplaced", err)
	}
	cancel()
	if got := r.head(); got.ModelSHA256() != sum(t, m) || got.Position.Next != 300 {
		t.Errorf("%d events at offset %d were saved, want the 300 of the first log", got.Events, got.Position.Next)
	}
}

// replaceTopic deletes the events topic and creates it again, empty.
func (r *rig) replaceTopic() {
	r.t.Helper()
	res, err := r.client().DeleteTopics(r.t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{r.topic}})
	if err != nil || res.Errors[r.topic] != nil {
		r.t.Fatal(err, res.Errors)
	}
	if err := kafka.EnsureTopic(r.t.Context(), r.kafka, r.topic, 1, 0, time.Hour); err != nil {
		r.t.Fatal(err)
	}
}

// otherTexts returns n records that texts does not.
func otherTexts(topic string, n int) []kafka.Record {
	others := make([]kafka.Record, n)
	for i := range others {
		others[i] = textRecord(topic, 1000+i, i%2 == 0, "other mail "+strconv.Itoa(i))
	}
	return others
}

// A learner goes on if retention deleted only records that its model has learnt.
func TestRetentionUpToThePosition(t *testing.T) {
	r := newRigWith(t, 1, embedded.KafkaOptions{MaxBytes: 1 << 30}) // so that retention is applied
	const n = 300
	records, m := texts(t, r.topic, n)
	r.produce(records[:n/2]...)
	r.learn(r.config("g"), n/2)
	r.retain("1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for first := map[int]int64{}; first[0] < n/2; <-tick.C {
		var err error
		if first, _, err = kafka.Offsets(ctx, r.kafka, r.topic); err != nil {
			t.Fatal(err)
		}
	}
	r.retain("-1")
	r.produce(records[n/2:]...)
	r.learn(r.config("g"), n)
	if c := r.head(); c.ModelSHA256() != sum(t, m) || c.Position.Next != n {
		t.Errorf("at offset %d: the model differs", c.Position.Next)
	}
}

// retain sets how long the events are kept, in milliseconds.
func (r *rig) retain(ms string) {
	r.t.Helper()
	res, err := r.client().IncrementalAlterConfigs(r.t.Context(), &kafkago.IncrementalAlterConfigsRequest{
		Resources: []kafkago.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: stream.EventsTopic("default"),
			Configs: []kafkago.IncrementalAlterConfigsRequestConfig{{
				Name: "retention.ms", Value: ms, ConfigOperation: kafkago.ConfigOperationSet,
			}},
		}},
	})
	if err != nil || len(res.Resources) != 1 || res.Resources[0].Error != nil {
		r.t.Fatal(err, res)
	}
}
