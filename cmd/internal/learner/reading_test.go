package learner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A feeder reads the records that come next for the model, in bounded memory: all but dead
// letters, and again when some were taken.
func TestFeederReadsAhead(t *testing.T) {
	const n = 100
	m, err := model.New(model.Config{TableBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := newFeeder(0, state.Position{}, 0, false, func() {})
	f.want = n
	handler := &feeding{feeder: f, ctx: t.Context()}
	var records []kafka.Record
	for i := range n {
		r := kafka.Record{Offset: int64(i), Value: []byte("no event")}
		if i%10 != 3 {
			e := stream.Event{ID: fmt.Sprint(i), Source: "s", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: fmt.Sprint("words of ", i)}}
			if r.Value, r.Headers, err = e.EncodeRecord(); err != nil {
				t.Fatal(err)
			}
		}
		records = append(records, r)
	}
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	reading.Go(func() { f.read(ctx, m.NewReader()) })
	for batch := range slices.Chunk(records, 7) {
		if err := handler.Handle(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	learnt := 0
	for to := int64(5); to <= n; to += 5 {
		deadline := time.Now().Add(patience)
		for f.unreadBelow(to) && time.Now().Before(deadline) {
			<-poll.C
		}
		took, _, err := f.take(t.Context(), t.Context(), to)
		if err != nil || len(took) != 5 {
			t.Fatal(len(took), err)
		}
		for i := range took {
			r := &took[i]
			if event := r.in.err == nil; (r.reading != nil) != event || r.in.example.Body.Reading != r.reading {
				t.Errorf("offset %d: event %t, read %t", r.record.Offset, event, r.reading != nil)
			} else if event {
				learnt++
				if _, err := m.Apply(&r.in.example); err != nil {
					t.Error(err)
				}
			}
			f.release(r)
		}
	}
	stop()
	reading.Wait()
	if learnt != n*9/10 || m.Events() != uint64(learnt) {
		t.Errorf("%d events are read and learnt, %d by the model", learnt, m.Events())
	}
	if free := len(f.readings); free < readAhead-1 || free > readAhead { // read may hold one
		t.Errorf("%d of %d readings are free at the end", free, readAhead)
	}
}

// unreadBelow reports whether an event below an offset is not read.
func (f *feeder) unreadBelow(to int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.fed, func(r fed) bool { return r.at.Next <= to && r.in.err == nil && r.reading == nil })
}
