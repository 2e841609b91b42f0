package learner

import (
	"errors"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// A broker is a Kafka with the topics of a rig in place of its logs in memory.
type broker struct {
	*rig
	kafka kafka.Config
	log   *kafka.Log
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	b := &broker{rig: newRig(t), kafka: kafka.Config{Brokers: []string{k.Addr()}}}
	b.ensure()
	b.log = b.open()
	return b
}

func (b *broker) ensure() {
	b.t.Helper()
	if err := b.kafka.Ensure(b.t.Context(), b.topic, 0, time.Hour); err != nil {
		b.t.Fatal(err)
	}
}

// open returns the topic as another client sees it.
func (b *broker) open() *kafka.Log {
	b.t.Helper()
	log, err := kafka.NewLog(b.kafka, b.topic)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = log.Close() })
	return log
}

func (b *broker) config() Config {
	b.t.Helper()
	cfg := b.rig.config()
	cfg.Follow.Log = b.open()
	return cfg
}

func (b *broker) produce(records ...stream.Record) {
	b.t.Helper()
	if err := b.log.Append(b.t.Context(), records...); err != nil {
		b.t.Fatal(err)
	}
}

// replaceTopic deletes the topic of events and creates it again, empty.
func (b *broker) replaceTopic() {
	b.t.Helper()
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(b.kafka.Brokers...), Transport: transport}
	res, err := client.DeleteTopics(b.t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{b.topic}})
	if err != nil || res.Errors[b.topic] != nil {
		b.t.Fatal(err, res.Errors)
	}
	b.ensure()
}

// A topic is learnt in fetches of any size, with restarts, and by a standby that takes over.
func TestATopicIsLearnt(t *testing.T) {
	b := newBroker(t)
	records, m := texts(t, 600)
	b.produce(records[:400]...)
	for i, end := range []int64{50, 51, 200, 400} {
		cfg := b.config()
		cfg.Follow.MaxBatch = 1 + 20*i
		b.learn(cfg, end)
	}
	first, second := b.run(b.config()), b.run(b.config())
	for _, p := range []*running{first, second} {
		p.until(t, "follows", func(s Status) bool { return s.Next == 400 })
	}
	if second.l.Status().Active {
		first, second = second, first
	}
	b.produce(records[400:500]...)
	second.until(t, "follows", func(s Status) bool { return s.Next == 500 })
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	b.produce(records[500:]...)
	second.until(t, "took over", func(s Status) bool { return s.Active && s.SavedEnd == 600 })
	if b.head().ModelSHA256 != sum(t, m) {
		t.Error("the model differs")
	}
}

// A topic that is deleted and made again under a learner is another log, also where it has the same
// offsets. The learner saves nothing of it and ends, and refuses it at the next start.
func TestATopicReplacedUnderALearner(t *testing.T) {
	b := newBroker(t)
	records, m := texts(t, 300)
	b.produce(records...)
	p := b.run(b.config())
	p.until(t, "saved", func(s Status) bool { return s.SavedEnd == 300 })
	b.replaceTopic()
	b.produce(others(600)...)
	err := p.await(func(Status) bool { return false }) // it ends by itself
	if !errors.Is(err, follow.ErrReplaced) {
		t.Errorf("got %v, want ErrReplaced", err)
	}
	if err := b.try(b.config(), 600); !errors.Is(err, follow.ErrReplaced) {
		t.Errorf("the next start: got %v, want ErrReplaced", err)
	}
	if c := b.head(); c.ModelSHA256 != sum(t, m) || c.Position.Next != 300 {
		t.Errorf("%d events at offset %d were saved, want the 300 of the first log", c.Events, c.Position.Next)
	}
}
