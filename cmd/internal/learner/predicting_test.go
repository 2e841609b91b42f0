package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
)

// written collects blocks.
type written []predictions.Prediction

func (w *written) Publish(_ context.Context, records ...kafka.Record) error {
	for i := range records {
		b, err := predictions.Decode(records[i].Value)
		if err != nil {
			return err
		}
		if b.Model != "default" || b.Events != stream.EventsTopic("default") || records[i].Topic != predictions.Topic("default") {
			return fmt.Errorf("a block of %s, of %s, in %s", b.Model, b.Events, records[i].Topic)
		}
		*w = append(*w, b.Predictions...)
	}
	return nil
}

// What is written is what the model predicted before it learnt each label, once an event. A
// record that teaches nothing has no prediction.
func TestPredictionsAreThoseOfTheModel(t *testing.T) {
	r := newRig(t, 1)
	records, _ := texts(t, r.topic, 120)
	records[7] = kafka.Record{Topic: r.topic, Value: []byte("no event")}
	records[9] = records[8] // a duplicate
	var want []predictions.Prediction
	m, err := model.New(r.config("g").Model)
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
	cfg := r.config("g")
	cfg.SaveEvery, cfg.Predictions = time.Hour, &got
	p := opened(t, cfg)
	if err := p.Handle(t.Context(), numbered(records, 0)); err != nil {
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
	r := newRig(t, 1)
	records, _ := texts(t, r.topic, 40)
	cfg := r.config("g")
	cfg.SaveEvery = 1 // each time
	refused := errors.New("refused")
	cfg.Predictions = lettersFunc(func(context.Context, ...kafka.Record) error { return refused })
	if err := opened(t, cfg).Handle(t.Context(), numbered(records, 0)); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if versions, err := r.store.Partitions(t.Context()); err != nil || len(versions) > 0 {
		t.Errorf("saved: %v, %v", versions, err)
	}
	for _, refused := range []error{kafka.ErrAuth, kafka.ErrUnknownTopic} {
		cfg.Predictions = lettersFunc(func(context.Context, ...kafka.Record) error { return refused })
		if err := opened(t, cfg).Handle(t.Context(), numbered(records, 0)); !errors.Is(err, refused) || !strings.Contains(err.Error(), "hamlet.predictions.default, or start") || !strings.Contains(err.Error(), "--no-predictions") {
			t.Errorf("%v: got %v", refused, err)
		}
	}
	var got written
	cfg.SaveEvery, cfg.Predictions = time.Hour, &got
	p := opened(t, cfg)
	p.predicted = make([]predictions.Prediction, maxPredicted-40)
	if err := p.Handle(t.Context(), numbered(records, 0)); err != nil || len(got) != maxPredicted || len(p.predicted) != 0 {
		t.Errorf("%d predictions were written, %v", len(got), err)
	}
	cfg.Predictions = nil
	p = opened(t, cfg)
	if err := p.Handle(t.Context(), numbered(records, 0)); err != nil || len(p.predicted) != 0 {
		t.Errorf("%d predictions are kept that nobody wants, %v", len(p.predicted), err)
	}
}

// The active learner of several partitions dies with predictions that it has not written. The
// standby has kept them: each event has a prediction, and what stands twice is equal.
func TestAStandbyKeepsPredictions(t *testing.T) {
	r := newOrderedRig(t, 3)
	if err := kafka.EnsureTopic(t.Context(), r.kafka, predictions.Topic("default"), 1, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	records, _ := texts(t, r.topic, 300)
	predicting := func(cfg *Config) { cfg.Predictions = cfg.DeadLetters }
	a, b := r.replica("a", predicting), r.replica("b", predicting)
	a.sit()
	r.spread(slices.Clone(records[:100]))
	a.until("saved", func(s Status) bool { return saved(s) && s.Events == 100 })
	b.until("follows", events(100))
	a.store.die(errDead)
	r.spread(slices.Clone(records[100:200]))
	b.until("follows", events(200))
	b.sit()
	b.until("takes over", active)
	r.spread(slices.Clone(records[200:]))
	r.untilSaved()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	_ = a.stop()
	if n := b.store.loaded(); n != 1 {
		t.Errorf("the standby has loaded the model %d times, want once", n)
	}
	_, end, err := kafka.Offsets(t.Context(), r.kafka, predictions.Topic("default"))
	if err != nil {
		t.Fatal(err)
	}
	var all written
	err = kafka.ReadRange(t.Context(), r.kafka, predictions.Topic("default"), 0, 0, end[0], func(rec *kafka.Record) error {
		return all.Publish(t.Context(), *rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		partition int
		offset    int64
	}
	made := map[place]predictions.Prediction{}
	for _, p := range all {
		at := place{p.Partition, p.Offset}
		if before, ok := made[at]; ok && before != p {
			t.Errorf("%+v was %+v", p, before)
		}
		made[at] = p
	}
	if len(made) != 300 {
		t.Errorf("%d of 300 events have a prediction", len(made))
	}
}

// Too many predictions drop the oldest, and the standby goes on with its own model.
func TestKeptPredictionsAreBounded(t *testing.T) {
	var k keeping
	k.predict(1, make([]predictions.Prediction, maxKeptPredictions-1))
	k.predict(2, make([]predictions.Prediction, 1))
	if k.forgotten != 0 {
		t.Fatal("too early")
	}
	k.predict(3, make([]predictions.Prediction, 2))
	if !k.whole() || len(k.predicted) != maxKeptPredictions || k.forgotten != 2 {
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
	p := &partitionModel{l: &Learner{cfg: Config{Name: "default", Consumer: kafka.ConsumerConfig{Topic: "hamlet.events.default"},
		Predictions: lettersFunc(func(_ context.Context, records ...kafka.Record) error {
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
