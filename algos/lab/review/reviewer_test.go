package review

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// A Reviewer answers as a Predictor does and leaves the model as it is. The most doubtful
// body is worth more than the surest.
func TestReview(t *testing.T) {
	m, err := model.New(model.Config{Dense: []string{"a", "b"}, VectorEnsembles: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	body := func() (model.Body, bool) {
		a, b := r.NormFloat64(), r.NormFloat64()
		return model.Body{Vector: []feature.Number{{Name: "a", Value: a}, {Name: "b", Value: b}}}, a+b+0.3*r.NormFloat64() > 0
	}
	first, _ := body()
	_, worth, err := NewReviewer(m).Review(&first)
	if err != nil || worth.Fall != 0 || !(worth.Information > 0 && worth.Information < 0.7) {
		t.Errorf("before the first event: %+v, %v; want no fall and some information", worth, err)
	}
	for i := range 300 {
		b, spam := body()
		if _, err := m.Apply(&model.Example{ID: strconv.Itoa(i), Source: "desk", Spam: spam, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	before := bytesOf(t, m)
	reviewer, predictor := NewReviewer(m), m.NewPredictor()
	var surest, vaguest Worth
	least, most := 1.0, -1.0
	for range 100 {
		b, _ := body()
		got, worth, err := reviewer.Review(&b)
		want, wantErr := predictor.Predict(&b)
		if err != nil || wantErr != nil || got != want {
			t.Fatalf("%+v, %v; the predictor says %+v, %v", got, err, want, wantErr)
		}
		if !(worth.Fall > 0 && worth.Fall < 0.7 && worth.Information > 0 && worth.Information < 0.7) {
			t.Fatalf("%+v, want both above 0 and below ln 2", worth)
		}
		doubt := min(got.P(), 1-got.P())
		if doubt < least {
			surest, least = worth, doubt
		}
		if doubt > most {
			vaguest, most = worth, doubt
		}
	}
	if !(vaguest.Fall > 2*surest.Fall && vaguest.Information > 2*surest.Information) {
		t.Errorf("the most doubtful body: %+v, the surest: %+v", vaguest, surest)
	}
	if string(bytesOf(t, m)) != string(before) {
		t.Error("a review changed the model")
	}
	var refused *model.RefusedError
	if _, _, err := reviewer.Review(&model.Body{}); !errors.As(err, &refused) {
		t.Errorf("no body: error %v, want a refusal", err)
	}
}
