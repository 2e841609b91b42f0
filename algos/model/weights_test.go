package model

import (
	"bytes"
	"math"
	"testing"
)

// Weights are those of the head: with the inputs they make its answer, and to ask for them
// changes no byte.
func TestWeightsAreTheHeads(t *testing.T) {
	m := newOf(t, Config{TableBits: 8, Dense: []string{"a", "b"}, VectorEnsembles: []string{}})
	if all := m.Weights(); len(all) > 0 {
		t.Errorf("before the first event: %+v", all)
	}
	events := circles(120, 1)
	apply(t, m, events...)
	before, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := m.Weights()
	s := m.submodel(&events[0].Body)
	if len(all) != s.layout.dim() {
		t.Fatalf("%d weights of %d inputs", len(all), s.layout.dim())
	}
	x := make([]float64, len(all))
	want := 0.0
	for i, w := range all {
		if w.Body != BodyVector || w.Name != s.layout.names[i] || w.Product != 0 || w.SD <= 0 {
			t.Errorf("input %d is %+v, want %s", i, w, s.layout.names[i])
		}
		x[i] = 1
		want += w.Mean
		mean, variance := s.head.Moments(unit(len(all), i))
		if math.Abs(mean-w.Mean) > 1e-12 || math.Abs(variance-w.SD*w.SD) > 1e-12 {
			t.Errorf("input %d is %+v, the head says %v, %v", i, w, mean, variance)
		}
	}
	if mean, _ := s.head.Moments(x); math.Abs(mean-want) > 1e-12 {
		t.Errorf("the weights sum to %v, want %v", want, mean)
	}
	if after, err := m.AppendBinary(nil); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the model's bytes have changed, %v", err)
	}
}

// Products have the name of their input, and a number each.
func TestWeightsNumberProducts(t *testing.T) {
	m := newOf(t, Config{TableBits: 8})
	m.submodels[ofText] = newSubmodel(m.specs[ofText], m.cfg.Alarms)
	seen := map[Weight]bool{}
	products := 0
	for _, w := range m.Weights() {
		key := Weight{Name: w.Name, Product: w.Product}
		if seen[key] {
			t.Errorf("two inputs are %+v", key)
		}
		seen[key] = true
		products = max(products, w.Product)
	}
	if products != 2 {
		t.Errorf("inputs have up to %d products, want 2", products)
	}
}

func unit(n, i int) []float64 {
	x := make([]float64, n)
	x[i] = 1
	return x
}
