package withdraw

import (
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/example"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// newOrderedRig is a rig whose learner makes one model of all partitions.
func newOrderedRig(t *testing.T, partitions int) *rig {
	t.Helper()
	r := newRig(t, partitions)
	r.ordered = true
	if err := kafka.EnsureOrder(t.Context(), r.kafka, "default", r.topic, 1); err != nil {
		t.Fatal(err)
	}
	return r
}

// One model of three partitions: an event's number counts those of all, each withdrawal is
// written to the partition of its label, and the learner does what the plan shows.
func TestOneModelOfSeveralPartitions(t *testing.T) {
	r := newOrderedRig(t, 3)
	sources := []string{"desk", "liar"}
	texts := map[place]stream.Event{}
	add := func(n int) {
		for p := range 3 {
			var events []stream.Event
			for i := range n {
				e := label(1000*p+len(texts)+i, sources[i%2], i%2 == 1)
				events = append(events, e)
				if i%7 == 0 {
					events = append(events, e) // a copy
				}
			}
			end := r.ends()[p]
			r.write(p, events...)
			for i, e := range events {
				texts[place{p, end + int64(i)}] = e
			}
		}
	}
	add(40)
	if err := r.producer.PublishTo(t.Context(), r.topic, 1, kafka.Record{Topic: r.topic, Key: []byte("t"), Value: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	r.learn()
	parts, o, err := Servers{Kafka: r.kafka, Store: r.store}.parts(t.Context(), "default")
	if err != nil || o == nil || len(parts) != 3 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	for _, n := range []int{1, 2, 57, 119, 120} {
		since, until := map[int]int64{}, map[int]int64{}
		b := Bound{event: uint64(n), partition: -1}
		if err := b.resolve(t.Context(), parts, 0, func(p *part, offset int64) { since[p.number] = offset }); err != nil {
			t.Fatal(err)
		}
		if err := b.resolve(t.Context(), parts, 1, func(p *part, offset int64) { until[p.number] = offset }); err != nil {
			t.Fatal(err)
		}
		for i, at := range r.order {
			if from, to := at.offset >= since[at.partition], at.offset < until[at.partition]; from != (i >= n-1) || to != (i < n) {
				t.Errorf("event %d at %v: since event %d: %v, until: %v", i+1, at, n, from, to)
			}
		}
	}
	if _, err := r.run("--source liar --since 1:30 --dry-run"); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "without a partition") {
		t.Errorf("an event of one partition: %v", err)
	}
	if _, err := r.run("--source liar --since 121 --dry-run"); err == nil || !strings.Contains(err.Error(), "event 121 is not learnt and saved yet") {
		t.Errorf("an event to come: %v", err)
	}

	add(20) // behind the saved model, and in no order yet
	before := r.ends()
	dry := r.does("--source liar --since 61 --dry-run --recent 30")
	want := map[int]int{0: 10, 1: 10, 2: 10}
	for _, at := range r.order[60:] {
		if texts[at].Source == "liar" {
			want[at.partition]++
		}
	}
	compared := 0
	for _, p := range dry.Partitions {
		compared += p.Answers.Events
		if p.Labels != p.Withdrawable+p.Beyond || p.Withdrawable < want[p.Partition] {
			t.Errorf("partition %d: %+v, want %d labels", p.Partition, p, want[p.Partition])
		}
	}
	if compared != 30 {
		t.Errorf("%d answers are compared, want 30", compared)
	}
	got := r.does("--source liar --since 61 --yes --wait 0")
	for p, end := range r.ends() {
		if added := int(end - before[p]); added != got.Partitions[p].Withdrawable {
			t.Errorf("partition %d has %d records more, want %d", p, added, got.Partitions[p].Withdrawable)
		}
	}
	r.learn()
	if again := r.does("--source liar --since 61 --yes"); again.Written != 0 || again.Partitions[0].Withdrawn == 0 {
		t.Errorf("once more: %+v", again)
	}

	// The model is as if these labels were withdrawn in its order.
	m, err := model.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range r.order {
		e, learnt := texts[at]
		if !learnt {
			continue
		}
		ex, _, err := example.Of(&e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	if saved := r.head(0); saved.Events != uint64(len(r.order)) || m.Events() != 180 || len(r.order) != 180+got.Written {
		t.Errorf("the saved model has %d events; %d labels and %d withdrawals", saved.Events, m.Events(), got.Written)
	}
}

// Another order log or another events topic is refused.
func TestAnotherOrderLog(t *testing.T) {
	r := newOrderedRig(t, 2)
	r.write(0, label(1, "desk", false), label(2, "liar", true))
	r.write(1, label(3, "desk", false))
	r.learn()
	c := r.head(0)
	c.Order[20]++ // a byte of the order log's chain
	c.Position.Chain[0]++
	var err error
	if c.Epoch, err = r.store.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.write(1, label(4, "desk", false))
	if _, err := r.run("--source liar --since 1h --yes"); err == nil || !strings.Contains(err.Error(), "another log") {
		t.Errorf("another order log: %v", err)
	}
	c.Order[88+10]++ // a byte of partition 0's chain
	if c.Epoch, err = r.store.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("--source liar --since 1h --yes"); err == nil || !strings.Contains(err.Error(), "it is not the model's log") {
		t.Errorf("another record: %v", err)
	}
}
