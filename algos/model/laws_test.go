package model_test

import (
	"fmt"
	"testing"

	"hamlet/algos/algotest"
	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// inputs shows a model to the laws as a classifier of vectors; body says what a
// vector stands for.
type inputs struct {
	*model.Model
	body func(x []float64) model.Body
}

func (c inputs) Prob(x []float64) float64 {
	b := c.body(x)
	p, err := c.NewPredictor().Predict(&b)
	if err != nil {
		panic(err)
	}
	return p.P()
}

func (c inputs) Update(x []float64, y float64) {
	ex := model.Example{ID: fmt.Sprint(c.Events()), Spam: y > 0, Body: c.body(x)}
	if effect, err := c.Apply(&ex); err != nil || effect.Duplicate {
		panic(fmt.Sprint(effect, err))
	}
}

func numbers(x []float64) model.Body {
	v := make([]feature.Number, len(x))
	for j := range x {
		v[j] = feature.Number{Name: fmt.Sprintf("x%02d", j), Value: x[j]}
	}
	return model.Body{Vector: v}
}

// message writes a word for the sign of each number.
func message(x []float64) model.Body {
	text := []byte{}
	for j := range x {
		switch {
		case x[j] > 0:
			text = fmt.Appendf(text, "high%02d ", j)
		case x[j] < 0:
			text = fmt.Appendf(text, "low%02d ", j)
		}
	}
	return model.Body{Message: &feature.Message{Head: text, Subject: text, Body: text, BodyBytes: len(text)}}
}

func TestLaws(t *testing.T) {
	const d = 8
	var columns []string
	for _, n := range numbers(make([]float64, d)).Vector {
		columns = append(columns, n.Name)
	}
	for _, tt := range []struct {
		name   string
		cfg    model.Config
		body   func(x []float64) model.Body
		near   float64
		exempt map[algotest.Law]string
	}{
		{name: "dense", cfg: model.Config{Dense: columns}, body: numbers,
			exempt: map[algotest.Law]string{algotest.PermutedInputs: "a deep node of a tree has few rows; of inputs that divide them alike the first is taken"}},
		{name: "hashed", body: numbers, near: 1e-3}, // tables are float32
		// Without trees: the last bit of a float32 moves a value across a cut.
		{name: "half of each", cfg: model.Config{Dense: columns[:d/2], VectorEnsembles: []string{}}, body: numbers, near: 1e-3,
			exempt: map[algotest.Law]string{algotest.PermutedInputs: "a hashed input is not treated as a dense one"}},
		{name: "message", body: message, near: 1e-3,
			exempt: map[algotest.Law]string{algotest.PermutedInputs: "a permuted text has other words and other n-grams"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.TableBits = 10
			algotest.Run(t, algotest.Subject{
				Dim: d, Near: tt.near, Exempt: tt.exempt,
				New: func() algotest.Classifier { return inputs{newModel(t, tt.cfg), tt.body} },
				Restore: func(b []byte) (algotest.Classifier, error) {
					m, err := model.Restore(b)
					return inputs{m, tt.body}, err
				},
			})
		})
	}
}
