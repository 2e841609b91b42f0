package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// What does not belong together is refused with words: models of another layout, and a
// range of other records.
func TestOrderedRefuses(t *testing.T) {
	r := newOrderedRig(t, 2)
	records, _ := texts(t, r.topic, 60)
	r.spread(slices.Clone(records))
	cfg := r.ordered("a")
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	foreign := order.Record{Kind: order.Range, Writer: "stranger", From: r.place().Places[0].Next, Chain: order.Chain{1}}
	foreign.To = foreign.From + 1
	value, err := foreign.AppendProto(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.produce(kafka.Record{Topic: cfg.Order.Topic, Value: value})
	r.publishTo(0, records[:1])
	if err := r.runOrdered(cfg); !errors.Is(err, sequencer.ErrForeign) {
		t.Errorf("after a foreign range: %v, want ErrForeign", err)
	}
	for partition := range 1 { // and the learner that holds the model does not notice
		store := &asked{Store: r.store}
		b := r.config(fmt.Sprint("b", partition))
		if b.Store = store; partition == 2 {
			b.Store = corruptHead{store}
		}
		l, err := New(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.open(t.Context(), partition); err == nil || !strings.Contains(err.Error(), "--models one") || len(store.calls) > 0 {
			t.Errorf("a model of partition %d goes on from one: %v, after %q", partition, err, store.calls)
		}
	}

}

// A corruptHead is a store whose newest manifest is damaged, and whose version before is not.
type corruptHead struct{ Store }

func (corruptHead) Manifest(context.Context, state.Pointer) (*state.Manifest, int64, error) {
	return nil, 0, state.ErrCorrupt
}

// An order log that has lost its beginning is no order. There is no setting for that.
func TestALostOrderIsRefused(t *testing.T) {
	r := newOrderedRig(t, 1)
	records, _ := texts(t, r.topic, 40)
	r.spread(records)
	cfg := r.ordered("a")
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	r.deleteTopicRecords(cfg.Order.Topic, 0, 1)
	r.forget()
	cfg.Consumer.AcceptLostBeginning = true
	if err := r.runOrdered(cfg); !errors.Is(err, kafka.ErrNoBeginning) || strings.Contains(err.Error(), "--accept") {
		t.Errorf("got %v, want ErrNoBeginning and no advice to accept it", err)
	}
}

// A feeder that ended because its partition is another log says so as long as it is asked, and
// nothing is saved.
func TestNothingIsSavedAfterAReplacedPartition(t *testing.T) {
	r := newOrderedRig(t, 2)
	records, _ := texts(t, r.topic, 40)
	r.spread(records)
	cfg := r.ordered("a")
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	before := r.head()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	first, err := l.openOrdered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.openOrdered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.running.Err() == nil {
		t.Error("a model that was dropped goes on reading")
	}
	o.halt(nil)

	at := o.state.Places[0].Position
	at.Before, at.Chain = [32]byte{1}, [32]byte{2} // as of another log
	f := newFeeder(0, at, 0, false, func() {})
	if err := f.run(t.Context(), cfg.Consumer); !errors.Is(err, kafka.ErrReplaced) || !errors.Is(f.confirmed(t.Context()), kafka.ErrReplaced) {
		t.Errorf("the feeder ended with %v, and is confirmed as %v; want ErrReplaced", err, f.confirmed(t.Context()))
	}
	o.Position(func(context.Context) error { return kafka.ErrUnconfirmed })
	o.feeders = []*feeder{o.feeders[1], f}
	if err := o.confirm(t.Context()); !errors.Is(err, kafka.ErrUnconfirmed) {
		t.Errorf("the order log is not confirmed, and the model says %v", err)
	}
	o.noteUnsaved(time.Now)
	if err := o.Close(t.Context()); !errors.Is(err, kafka.ErrReplaced) {
		t.Errorf("Close = %v, want ErrReplaced", err)
	}
	if after := r.head(); !after.Saved.Equal(before.Saved) {
		t.Errorf("the model was saved at offset %d", after.Position.Next)
	}
}
