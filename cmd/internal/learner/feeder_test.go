package learner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// fedWith returns a feeder of partition 0 that has read records at these offsets.
func fedWith(t *testing.T, offsets ...int64) *feeder {
	t.Helper()
	f := newFeeder(0, state.Position{}, 0, false, func() {})
	f.stop = func() {}
	f.want = 1 << 40 // so that there is always room
	handler := &feeding{feeder: f, ctx: t.Context()}
	for batch := range slices.Chunk(offsets, 512) {
		var records []kafka.Record
		for _, offset := range batch {
			records = append(records, kafka.Record{Offset: offset, Value: []byte("no event")})
		}
		if err := handler.Handle(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// offsetsBelow returns the offsets 0 to n−1.
func offsetsBelow(n int64) (offsets []int64) {
	for offset := range n {
		offsets = append(offsets, offset)
	}
	return offsets
}

// propose returns all that a feeder proposes.
func proposals(f *feeder) (ranges []order.Record) {
	for {
		r, ok := f.propose(128)
		if !ok {
			return ranges
		}
		r.Writer = "w"
		ranges = append(ranges, r)
	}
}

// What the order log passed over is proposed again, from what the model has taken on, and a
// gap too. It is not proposed for each record that was passed over.
func TestPassedOverIsProposedAgain(t *testing.T) {
	f := fedWith(t, offsetsBelow(300)...)
	first := proposals(f)
	if _, _, err := f.take(t.Context(), t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if f.restart(now); len(proposals(f)) != 0 {
		t.Error("proposed again, and nothing was passed over")
	}
	f.passOver()
	f.restart(now)
	again := proposals(f)
	if len(again) == 0 || again[0].From != 50 || again[len(again)-1].To != 300 || again[len(again)-1].Chain != first[len(first)-1].Chain {
		t.Errorf("proposed again: %+v", again)
	}
	f.passOver() // of the same append
	if f.restart(now.Add(restartPause / 2)); len(proposals(f)) != 0 {
		t.Error("proposed again too soon")
	}
	if f.restart(now.Add(restartPause)); len(proposals(f)) == 0 {
		t.Error("never proposed again")
	}

	f.change(func() { f.lost = true })
	f.passOver()
	if _, _, err := f.take(t.Context(), t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	f.restart(now)
	if _, lost := f.gap(); lost {
		t.Error("a gap is proposed before the records that come first")
	}
	proposals(f)
	if from, lost := f.gap(); !lost || from != 300 {
		t.Errorf("gap at %d, %v", from, lost)
	}
	f.noteGap()
	if _, lost := f.gap(); lost {
		t.Error("a gap is proposed twice")
	}
	f.passOver()
	f.restart(now.Add(restartPause))
	proposals(f)
	if _, lost := f.gap(); !lost {
		t.Error("a gap that was passed over is not proposed again")
	}
}

// A range may cover any number of offsets without a record, and no more records than a
// learner holds.
func TestRangesAreBoundedByRecords(t *testing.T) {
	f := fedWith(t, 0, 1, 100_000, 1<<40)
	got := proposals(f)
	if len(got) != 1 || got[0].From != 0 || got[0].To != 1<<40+1 {
		t.Fatalf("proposed %+v", got)
	}
	if _, err := got[0].AppendProto(nil); err != nil {
		t.Error(err)
	}
	if records, at, err := f.take(t.Context(), t.Context(), 1<<40+1); len(records) != 4 || at.Chain != got[0].Chain || err != nil {
		t.Errorf("took %d records to %s, %v", len(records), at, err)
	}
	for _, to := range []int64{order.MaxRange + 1, order.MaxRange + 100} {
		f = fedWith(t, offsetsBelow(order.MaxRange+1)...)
		if _, _, err := f.take(t.Context(), t.Context(), to); !errors.Is(err, sequencer.ErrLong) {
			t.Errorf("a range of %d records: %v, want ErrLong", to, err)
		}
	}
}

// A forgetful log loses the second of the ranges that it acknowledges.
type forgetfulLog struct {
	Publisher
	mu     sync.Mutex
	ranges int
}

func (p *forgetfulLog) Publish(ctx context.Context, records ...kafka.Record) error {
	p.mu.Lock()
	records = slices.DeleteFunc(slices.Clone(records), func(r kafka.Record) bool {
		if d, err := order.Decode(r.Value); err != nil || d.Kind != order.Range {
			return false
		}
		p.ranges++
		return p.ranges == 2
	})
	p.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	return p.Publisher.Publish(ctx, records...)
}

// A model goes on where the order log lacks a range that its learner wrote.
func TestALostRangeIsProposedAgain(t *testing.T) {
	r := newOrderedRig(t, 2)
	records, _ := texts(t, r.topic, 400)
	for i := range records {
		r.publishTo(0, records[i:i+1])
	}
	cfg := r.ordered("a")
	cfg.Order.Append = &forgetfulLog{Publisher: r.producer}
	if err := r.runOrdered(cfg); err != nil {
		t.Fatal(err)
	}
	if got := r.wantReplayed(cfg); got != 400 {
		t.Errorf("the logs name %d records, want 400", got)
	}
}
