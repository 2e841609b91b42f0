package pinning

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/replay"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// awaitAll waits until one model has saved all that is written.
func (d *double) awaitAll(store *redis.Store) *state.Checkpoint {
	d.t.Helper()
	want := sequencer.Offsets{int64(len(d.written[0])), int64(len(d.written[1]))}
	deadline := time.Now().Add(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		c, _, err := store.Load(d.t.Context(), state.Head)
		if err == nil {
			if offsets, err := sequencer.OffsetsIn(c.Order); err == nil && slices.Equal(offsets, want) {
				return c
			}
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the model is not there: %v", err)
		}
	}
	return nil
}

// One model of two partitions takes the place of another that follows the same order log, and
// of no model of another layout.
func TestReplaceAModelOfSeveralPartitions(t *testing.T) {
	d := newDouble(t, 2)
	d.ordered = true
	if err := kafka.EnsureOrder(t.Context(), d.kafka, "default", stream.EventsTopic("default"), 1); err != nil {
		t.Fatal(err)
	}
	d.write(0, 60)
	d.write(1, 40)
	d.start("default", d.old, modelConfig())
	d.awaitAll(d.old)
	d.start("clean", d.clean, modelConfig("bad"))
	d.awaitAll(d.clean)
	d.stop["clean"]()
	d.write(1, 20) // the old one is ahead until the new one has learnt that too
	d.awaitAll(d.old)
	d.start("clean", d.clean, modelConfig("bad"))
	out, err := d.run("replace --by clean --wait 2m --kafka " + d.kafka.Brokers[0])
	if err != nil || !strings.Contains(out, "which it replaces, is kept for 30 days") {
		t.Fatalf("%v: %s", err, out)
	}
	d.write(0, 20)
	c := d.awaitAll(d.old)
	items := orderlog.Items(t.Context(), orderlog.Config{Kafka: d.kafka, Events: stream.EventsTopic("default"), Order: order.Topic("default"), End: c.Position.Next})
	_, m, err := replay.Run(t.Context(), replay.Config{Model: modelConfig("bad")}, items)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.AppendBinary(nil); err != nil || string(b) != string(c.Model) {
		t.Errorf("the model is not that of eval without the source: %v", err)
	}
	if out, err := d.run("versions"); err != nil || !strings.Contains(out, "0–1") {
		t.Errorf("versions: %v\n%s", err, out)
	}
	d.stop["default"]()
	d.stop["clean"]()

	alone := *c
	alone.Order = nil
	if alone.Epoch, err = d.clean.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.clean.Save(t.Context(), &alone); err != nil {
		t.Fatal(err)
	}
	if _, err := d.run("replace --by clean --wait 1s --kafka " + d.kafka.Brokers[0]); err == nil || !strings.Contains(err.Error(), "one model alone learns all partitions") {
		t.Errorf("by a model of another layout: %v", err)
	}
}
