package learner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

// written collects blocks.
type written []predictions.Prediction

func (w *written) Append(_ context.Context, records ...stream.Record) error {
	for i := range records {
		b, err := predictions.Decode(records[i].Value)
		if err != nil {
			return err
		}
		if b.Model != "default" || b.Events != stream.EventsTopic("default") {
			return fmt.Errorf("a block of %s, of %s", b.Model, b.Events)
		}
		*w = append(*w, b.Predictions...)
	}
	return nil
}

// What is written is what the model predicted before it learnt each label, once an event. A
// record that teaches nothing has no prediction.
func TestPredictionsAreThoseOfTheModel(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 120)
	records[7] = stream.Record{Value: []byte("no event")}
	records[9] = records[8] // a duplicate
	var want []predictions.Prediction
	m, err := model.New(r.config().Model)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
		if err != nil {
			continue
		}
		body := []byte(e.Body.Text)
		effect, err := m.Apply(&model.Example{ID: e.ID, Source: e.Source, Spam: e.Label == stream.Spam, Identity: identityOf(&e),
			Body: model.Body{Tenant: "t", Message: &feature.Message{Body: body, BodyBytes: len(body)}}})
		if err != nil {
			t.Fatal(err)
		}
		if !effect.Duplicate {
			want = append(want, predictions.Prediction{Offset: int64(i), Spam: e.Label == stream.Spam, LogOdds: float32(effect.Prediction.LogOdds)})
		}
	}
	var got written
	cfg := r.config()
	cfg.SaveEvery, cfg.Predictions = time.Hour, &got
	p := opened(t, cfg)
	if err := handle(t, p, records, 0); err != nil {
		t.Fatal(err)
	}
	if len(got) != 0 {
		t.Errorf("%d predictions before a save", len(got))
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, []predictions.Prediction(got)); diff != "" {
		t.Error(diff)
	}
	p.l.savings.Wait()
}

// A save covers no event whose prediction is not out. Many predictions go out without a save.
func TestSavesWaitForPredictions(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 40)
	cfg := r.config()
	cfg.SaveEvery = 1 // each time
	refused := errors.New("refused")
	cfg.Predictions = lettersFunc(func(context.Context, ...stream.Record) error { return refused })
	if err := handle(t, opened(t, cfg), records, 0); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if _, err := r.store.Heading(t.Context(), state.Head); !errors.Is(err, state.ErrNone) {
		t.Errorf("saved: %v", err)
	}
	for _, refused := range []error{stream.ErrDenied, stream.ErrNoLog} {
		cfg.Predictions = lettersFunc(func(context.Context, ...stream.Record) error { return refused })
		var predicting *PredictionsError
		err := handle(t, opened(t, cfg), records, 0)
		if !errors.Is(err, refused) || !errors.As(err, &predicting) || predicting.Topic != "hamlet.predictions.default" {
			t.Errorf("%v: got %v", refused, err)
		}
	}
	var got written
	cfg.SaveEvery, cfg.Predictions = time.Hour, &got
	p := opened(t, cfg)
	p.predicted = make([]predictions.Prediction, maxPredicted-40)
	if err := handle(t, p, records, 0); err != nil || len(got) != maxPredicted || len(p.predicted) != 0 {
		t.Errorf("%d predictions were written, %v", len(got), err)
	}
	p.l.release()
	cfg.Predictions = nil
	p = opened(t, cfg)
	if err := handle(t, p, records, 0); err != nil || len(p.predicted) != 0 {
		t.Errorf("%d predictions are kept that nobody wants, %v", len(p.predicted), err)
	}
}

// The active learner dies with predictions that it has not written. The standby has kept them: each
// event has a prediction, and what stands twice is equal.
func TestAStandbyKeepsPredictions(t *testing.T) {
	r := newRig(t)
	records, _ := texts(t, 300)
	var all written
	predicting := func(cfg *Config) { cfg.Predictions = &all }
	a, b := r.hand("a", predicting), r.hand("b", predicting)
	a.learn(0, records[:100]...)
	b.learn(0, records[:100]...)
	a.save()
	b.look(1)
	b.reloads("another learner")
	b.open()
	b.learn(100, records[100:200]...)
	a.learn(100, records[100:200]...) // and dies
	b.look(lapsedAfter)
	b.idle(active)
	b.learn(200, records[200:]...)
	b.save()
	made := map[int64]predictions.Prediction{}
	for _, p := range all {
		if before, ok := made[p.Offset]; ok && before != p {
			t.Errorf("%+v was %+v", p, before)
		}
		made[p.Offset] = p
	}
	if len(made) != 300 || len(all) != 300 {
		t.Errorf("%d predictions of %d events, want 300", len(all), len(made))
	}
}

// Too many predictions drop the oldest, and the standby goes on with its own model.
func TestKeptPredictionsAreBounded(t *testing.T) {
	var k backlog
	k.predict(1, make([]predictions.Prediction, maxBacklogPredictions-1))
	k.predict(2, make([]predictions.Prediction, 1))
	if k.forgotten != 0 {
		t.Fatal("too early")
	}
	k.predict(3, make([]predictions.Prediction, 2))
	if !k.whole() || len(k.predicted) != maxBacklogPredictions || k.forgotten != 2 {
		t.Errorf("%d are kept and %d forgotten, whole: %v; want the newest", len(k.predicted), k.forgotten, k.whole())
	}
	if k.trim(2); len(k.predicted) != 2 || k.forgotten != 0 {
		t.Errorf("%d are kept after a save of all but the last two, and %d without a save", len(k.predicted), k.forgotten)
	}
	k.trim(3)
	k.predict(4, []predictions.Prediction{{Offset: 9}})
	if _, got := k.take(); !k.whole() || len(got) != 1 || got[0].Offset != 9 {
		t.Errorf("took %+v", got)
	}
}

// What an event's prediction costs: noting it and its part of a block.
func BenchmarkPredictions(b *testing.B) {
	var size int
	p := &worker{l: &Learner{cfg: Config{Name: "default", Topic: "hamlet.events.default",
		Predictions: lettersFunc(func(_ context.Context, records ...stream.Record) error {
			for i := range records {
				size += len(records[i].Value)
			}
			return nil
		})}}}
	applied := Applied{Event: &stream.Event{Label: stream.Spam}}
	for b.Loop() {
		applied.Offset++
		if p.predict(&applied); len(p.predicted) == maxPredicted {
			if err := p.publishPredictions(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(size)/float64(max(1, applied.Offset-int64(len(p.predicted)))), "B/event")
}
