package model_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// blank is a message that says nothing, in blocks of spam and ham.
func blank(i int) model.Example {
	return model.Example{ID: fmt.Sprint(i), Spam: i/200%2 == 0, Body: model.Body{Message: &feature.Message{}}}
}

// Where nothing but the past tells spam from ham, the share of it does.
func TestSpamShareFollowsTheStream(t *testing.T) {
	loss := map[bool]float64{}
	for _, with := range []bool{false, true} {
		m := newModel(t, model.Config{TableBits: 8, TextExperts: []string{text.Lean}, LabelTrust: model.TrustNone, SpamShare: with})
		for i := range 4000 {
			ex := blank(i)
			effect, err := m.Apply(&ex)
			if err != nil {
				t.Fatal(err)
			}
			p := effect.Prediction.P()
			if !ex.Spam {
				p = 1 - p
			}
			loss[with] -= math.Log(p) / 4000
		}
		_, why, err := m.NewPredictor().Explain(&model.Body{Message: &feature.Message{}})
		if err != nil {
			t.Fatal(err)
		}
		if named := slices.ContainsFunc(why, func(c model.Contribution) bool { return c.Name == "recent share of spam" }); named != with {
			t.Errorf("spam share %v, and among the reasons: %v", with, named)
		}
	}
	// A block of 200 takes 69 labels to turn the share: two thirds are foreseen.
	if loss[true] > loss[false]-0.1 {
		t.Errorf("log loss %v with the share, %v without", loss[true], loss[false])
	}
}
