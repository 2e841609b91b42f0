package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/algos/model"
	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/replay"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// newOrderedRig is a rig with so many partitions of events and an order log.
func newOrderedRig(t *testing.T, partitions int) *rig {
	t.Helper()
	r := newRig(t, partitions)
	if err := kafka.EnsureTopic(t.Context(), r.kafka, stream.ReceiptTopic, 1, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := kafka.EnsureOrder(t.Context(), r.kafka, "default", r.topic, 1); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) ordered(group string) Config {
	cfg := r.config(group)
	cfg.Order = &Order{Topic: order.Topic("default"), Writer: group, Append: r.producer}
	return cfg
}

// spread produces records to partitions, each with a key of its own.
func (r *rig) spread(records []kafka.Record) {
	for i := range records {
		records[i].Key = fmt.Append(nil, "key ", i)
	}
	r.produce(records...)
}

// runOrdered runs learners until one of them has saved a model that has taken everything.
func (r *rig) runOrdered(configs ...Config) error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	ended := make(chan error, len(configs))
	for _, cfg := range configs {
		l, err := New(cfg)
		if err != nil {
			return err
		}
		go func() { ended <- l.Run(ctx) }()
	}
	var errs []error
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !r.caughtUp() {
		select {
		case err := <-ended:
			errs = append(errs, fmt.Errorf("a learner ended early: %w", err))
			cancel()
			for range len(configs) - 1 {
				errs = append(errs, <-ended)
			}
			return errors.Join(errs...)
		case <-tick.C:
		}
	}
	cancel()
	for range configs {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// place returns the places of the saved model, nil before it.
func (r *rig) place() *sequencer.State {
	r.t.Helper()
	c, _, err := r.store.Load(r.t.Context(), state.Head)
	if errors.Is(err, state.ErrNone) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if len(c.Order) == 0 { // of another layout
		return nil
	}
	var s sequencer.State
	if err := s.UnmarshalBinary(c.Order); err != nil {
		r.t.Fatal(err)
	}
	if s.Log != c.Position {
		r.t.Fatalf("the checkpoint stands at %s, its order at %s", c.Position, s.Log)
	}
	return &s
}

// caughtUp reports whether the saved model has taken all events.
func (r *rig) caughtUp() bool {
	r.t.Helper()
	s := r.place()
	_, end, err := kafka.Offsets(r.t.Context(), r.kafka, r.topic)
	if err != nil {
		r.t.Fatal(err)
	}
	if s == nil || len(s.Places) != len(end) {
		return false
	}
	for i := range s.Places {
		if s.Places[i].Next != end[i] {
			return false
		}
	}
	return true
}

// wantReplayed fails unless the saved model is what the logs say, and returns how many
// records they name.
func (r *rig) wantReplayed(cfg Config) (records int) {
	r.t.Helper()
	head := r.head()
	p := &partitionModel{l: &Learner{cfg: cfg, counted: map[int]counts{}}, log: cfg.Log}
	var err error
	if p.model, err = model.New(cfg.Model); err != nil {
		r.t.Fatal(err)
	}
	p.l.cfg.Metrics, p.l.cfg.Announce, p.l.cfg.Observe = NewMetrics(nil), func(*stream.Alert) {}, nil
	last := map[int]int64{}
	err = orderlog.Read(r.t.Context(), orderlog.Config{Kafka: r.kafka, Events: r.topic, Order: cfg.Order.Topic, End: head.Position.Next}, func(rec *kafka.Record) error {
		if rec.Offset != last[rec.Partition] {
			r.t.Errorf("partition %d: offset %d, want %d", rec.Partition, rec.Offset, last[rec.Partition])
		}
		last[rec.Partition] = rec.Offset + 1
		in := read(rec, false)
		p.apply(rec, &in)
		records++
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if got := sum(r.t, p.model); got != head.ModelSHA256() {
		r.t.Errorf("the saved model is %x after %d events, the logs make %x after %d", head.ModelSHA256(), head.Events, got, p.model.Events())
	}
	// hamlet eval --kafka does this.
	events := orderlog.Items(r.t.Context(), orderlog.Config{Kafka: r.kafka, Events: r.topic, Order: cfg.Order.Topic, End: head.Position.Next})
	if _, evaluated, err := replay.Run(r.t.Context(), replay.Config{Model: cfg.Model}, events); err != nil || sum(r.t, evaluated) != head.ModelSHA256() {
		r.t.Errorf("the saved model is %x, a replay makes another one: %v", head.ModelSHA256(), err)
	}
	return records
}

// One model learns what is in four partitions, each record once, also after restarts. A
// copy in another partition is known, and an event is withdrawn from another partition.
func TestOneModelOfSeveralPartitions(t *testing.T) {
	r := newOrderedRig(t, 4)
	const n = 900
	records, _ := texts(t, r.topic, n)
	r.spread(slices.Clone(records[:n/2]))
	var mu sync.Mutex
	outcomes, partitions := map[Outcome]int{}, map[int]int{}
	cfg := r.ordered("a")
	cfg.Observe = func(a Applied) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[a.Outcome]++
		partitions[a.Partition]++
	}
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	r.wantReplayed(cfg)
	withdrawn, err := stream.DecodeRecord(records[7].Headers, records[7].Value)
	if err != nil {
		t.Fatal(err)
	}
	withdrawn.ID, withdrawn.Action, withdrawn.Of = "u", stream.Unlearn, withdrawn.ID
	value, headers, err := withdrawn.EncodeRecord()
	if err != nil {
		t.Fatal(err)
	}
	more := append(slices.Clone(records[n/2:]), kafka.Record{Topic: r.topic, Value: value, Headers: headers}, kafka.Record{Topic: r.topic, Value: []byte("no event")})
	more = append(more, slices.Clone(records[:20])...) // copies, under other keys
	r.spread(more)
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	if got := r.wantReplayed(cfg); got != n+22 {
		t.Errorf("the logs name %d records, want %d", got, n+22)
	}
	if outcomes[Learned] != n || outcomes[Duplicate] != 20 || outcomes[Unlearned] != 1 || outcomes[DeadLettered] != 1 || len(partitions) != 4 {
		t.Errorf("outcomes %v in partitions %v", outcomes, partitions)
	}
	receipt := consume(t, r.kafka, stream.ReceiptTopic, 1)[0].Value
	if !strings.Contains(string(receipt), `"outcome":"withdrawn"`) {
		t.Errorf("receipt %s", receipt)
	}
	_, letters, err := kafka.Offsets(t.Context(), r.kafka, stream.DeadLetterTopic)
	if err != nil || letters[0]+letters[1]+letters[2]+letters[3] != 1 {
		t.Errorf("dead letters %v, %v", letters, err)
	}
}

// A forgetful store loses saves: the learner drops its model and begins at the saved one.
type forgetful struct {
	Store
	mu    sync.Mutex
	saves int
}

func (f *forgetful) Save(ctx context.Context, c *state.Checkpoint) (int64, error) {
	f.mu.Lock()
	f.saves++
	forget := f.saves%3 == 1
	f.mu.Unlock()
	if forget {
		return 0, fmt.Errorf("forgotten: %w", state.ErrStale)
	}
	return f.Store.Save(ctx, c)
}

// Two learners that both think they are active, and lose what they have not saved again and
// again, make the model that the logs say. Each writes before the other writes on.
func TestTwoActiveLearners(t *testing.T) {
	r := newOrderedRig(t, 3)
	records, _ := texts(t, r.topic, 600)
	a, b := r.ordered("a"), r.ordered("b")
	a.SaveEvery, b.SaveEvery = 5*time.Millisecond, 300*time.Millisecond // each has time to save between the other's
	a.Consumer.MaxBatch = 16
	a.Store = &forgetful{Store: r.store}
	aWrote, bWrote := make(chan struct{}), make(chan struct{})
	a.Order.Append = &inTurn{Publisher: r.producer, wrote: aWrote, then: bWrote}
	b.Order.Append = &inTurn{Publisher: r.producer, first: aWrote, wrote: bWrote}
	for part := range slices.Chunk(records, 300) {
		r.spread(slices.Clone(part))
		if err := r.runOrdered(a, b); err != nil {
			t.Fatal(err)
		}
		r.wantReplayed(a)
	}
	writers := map[string]int{}
	for _, rec := range r.orderLog() {
		writers[rec.Writer]++
	}
	if len(writers) != 2 {
		t.Errorf("records of the order log by writer: %v, want those of both", writers)
	}
}

// An inTurn writes first when first is closed and again when then is; nil: at once. It closes
// wrote when it has written first.
type inTurn struct {
	Publisher
	first, then <-chan struct{}
	wrote       chan<- struct{}

	mu      sync.Mutex
	written int
}

func (p *inTurn) Publish(ctx context.Context, records ...kafka.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := p.first
	if p.written > 0 {
		turn = p.then
	}
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := p.Publisher.Publish(ctx, records...)
	if err == nil {
		if p.written++; p.written == 1 {
			close(p.wrote)
		}
	}
	return err
}

// orderLog returns the records of the order log.
func (r *rig) orderLog() (records []order.Record) {
	r.t.Helper()
	topic := order.Topic("default")
	_, end, err := kafka.Offsets(r.t.Context(), r.kafka, topic)
	if err != nil {
		r.t.Fatal(err)
	}
	err = kafka.ReadRange(r.t.Context(), r.kafka, topic, 0, 0, end[0], func(rec *kafka.Record) error {
		d, err := order.Decode(rec.Value)
		records = append(records, d)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return records
}

// Partitions that are added join. Records that retention took are left out if the operator
// says so, and the order log says it to everybody.
func TestOrderedPartitionsJoinAndLoseRecords(t *testing.T) {
	r := newOrderedRig(t, 1)
	records, _ := texts(t, r.topic, 400)
	cfg := r.ordered("a")
	r.spread(slices.Clone(records[:100]))
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(r.kafka.Brokers...), Transport: transport}
	if _, err := client.CreatePartitions(t.Context(), &kafkago.CreatePartitionsRequest{Topics: []kafkago.TopicPartitionsConfig{{Name: r.topic, Count: 3}}}); err != nil {
		t.Fatal(err)
	}
	r.publishTo(0, records[100:200])
	r.publishTo(2, records[200:300])
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	r.wantReplayed(cfg)

	r.publishTo(2, records[300:400])
	r.deleteRecords(2, 150)
	if err := r.runOrdered(cfg); !errors.Is(err, kafka.ErrGap) || !strings.Contains(err.Error(), "--accept-gap") {
		t.Fatalf("with a gap: %v, want ErrGap", err)
	}
	cfg.Consumer.AcceptGap = true
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	if s := r.place(); s.Places[2].Next != 200 || s.Places[2].Gaps != 1 || r.head().Events != 350 {
		t.Errorf("at %v after %d events", s.Places, r.head().Events)
	}

	// An operator's record does the same, without the flag.
	cfg.Consumer.AcceptGap = false
	more, _ := texts(t, r.topic, 430)
	r.publishTo(2, more[400:])
	r.deleteRecords(2, 210)
	if err := r.runOrdered(cfg); !errors.Is(err, kafka.ErrGap) || !strings.Contains(err.Error(), "hamlet order accept-gap 2 --model default") {
		t.Fatalf("with another gap: %v, want ErrGap and the command", err)
	}
	gap := order.Record{Kind: order.Gap, Writer: "operator", Partition: 2, From: 200, To: 210}
	value, err := gap.AppendProto(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.produce(kafka.Record{Topic: cfg.Order.Topic, Value: value})
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	if s := r.place(); s.Places[2].Next != 230 || s.Places[2].Gaps != 2 || r.head().Events != 370 {
		t.Errorf("at %v after %d events", s.Places, r.head().Events)
	}
	kinds := map[order.Kind]int{}
	for _, rec := range r.orderLog() {
		kinds[rec.Kind]++
	}
	if kinds[order.Beginning] != 1 || kinds[order.Join] < 2 || kinds[order.Gap] != 2 { // a slow broker may get a join twice
		t.Errorf("the order log has %v", kinds)
	}
}

func (r *rig) publishTo(partition int, records []kafka.Record) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := r.producer.PublishTo(ctx, r.topic, partition, records...)
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "the topic has") { // metadata may lag
			r.t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// deleteRecords deletes the records below an offset, as retention does.
func (r *rig) deleteRecords(partition int32, below int64) {
	r.t.Helper()
	r.deleteTopicRecords(r.topic, partition, below)
}

func (r *rig) deleteTopicRecords(topic string, partition int32, below int64) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.kafka.Brokers...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis = 10_000
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: below}}}}
	response, err := request.RequestWith(r.t.Context(), client)
	if err != nil || len(response.Topics) != 1 || response.Topics[0].Partitions[0].ErrorCode != 0 {
		r.t.Fatalf("%+v, %v", response, err)
	}
}
