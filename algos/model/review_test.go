package model_test

import (
	"errors"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// A Reviewer answers as a Predictor does and leaves the model as it is. The most doubtful
// message is worth more than the surest.
func TestReview(t *testing.T) {
	events := smsEvents(t)[:400]
	m := newModel(t, model.Config{})
	early := m.NewReviewer()
	prediction, worth, err := early.Review(&events[0].Body)
	if err != nil || worth.Fall != 0 || !(worth.Information > 0 && worth.Information < 0.7) {
		t.Errorf("before the first event: %+v, %+v, %v; want no fall and some information", prediction, worth, err)
	}
	apply(t, m, events[:300])
	before := bytesOf(t, m)
	r, predictor := m.NewReviewer(), m.NewPredictor()
	var surest, vaguest struct {
		worth model.Worth
		doubt float64
		seen  bool
	}
	for i := range events[300:] {
		b := &events[300+i].Body
		got, worth, err := r.Review(b)
		want, wantErr := predictor.Predict(b)
		if err != nil || wantErr != nil || got != want {
			t.Fatalf("message %d: %+v, %v; the predictor says %+v, %v", i, got, err, want, wantErr)
		}
		if !(worth.Fall > 0 && worth.Fall < 0.7 && worth.Information > 0 && worth.Information < 0.7) {
			t.Fatalf("message %d: %+v, want both above 0 and below ln 2", i, worth)
		}
		d := min(got.P(), 1-got.P())
		if !surest.seen || d < surest.doubt {
			surest.worth, surest.doubt, surest.seen = worth, d, true
		}
		if !vaguest.seen || d > vaguest.doubt {
			vaguest.worth, vaguest.doubt, vaguest.seen = worth, d, true
		}
	}
	if !(vaguest.worth.Fall > 2*surest.worth.Fall && vaguest.worth.Information > 2*surest.worth.Information) {
		t.Errorf("the most doubtful message: %+v, the surest: %+v", vaguest.worth, surest.worth)
	}
	if string(bytesOf(t, m)) != string(before) {
		t.Error("a review changed the model")
	}
	var refused *model.RefusedError
	if _, _, err := r.Review(&model.Body{}); !errors.As(err, &refused) {
		t.Errorf("no body: error %v, want a refusal", err)
	}
	vector := model.Body{Vector: []feature.Number{{Name: "a", Value: 1}}}
	if _, worth, err := r.Review(&vector); err != nil || worth.Fall != 0 || !(worth.Information > 0) {
		t.Errorf("a first vector: %+v, %v", worth, err)
	}
}
