package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
	"hamlet/algos/stack"
)

// lengths returns n labelled texts of words that say nothing. In the first 600, spam is
// what is neither short nor long, which no line tells. Then one label of three is false.
func lengths(n int, seed uint64) []Example {
	r := rand.New(rand.NewPCG(seed, 6))
	all := make([]Example, n)
	for i := range all {
		words := 1 + r.IntN(60)
		var b strings.Builder
		for range words {
			fmt.Fprintf(&b, "w%d ", r.IntN(2000))
		}
		spam := words > 12 && words < 32
		if i >= 600 && r.IntN(3) == 0 {
			spam = !spam
		}
		text := []byte(b.String())
		all[i] = Example{
			ID: fmt.Sprint("l", i), Source: []string{"desk", "trap"}[i%2], Spam: spam,
			Body: Body{Tenant: "t", Message: &feature.Message{Body: text, BodyBytes: len(text)}},
		}
	}
	return all
}

// gatedBeside is the configuration of a model with ensembles for mail and text.
func gatedBeside(kinds ...ensemble.Kind) Config {
	cfg := besideCircles(0)
	cfg.LabelTrust = TrustText
	for _, k := range kinds {
		cfg.TextEnsembles = append(cfg.TextEnsembles, string(k))
	}
	return cfg
}

// The head does not know of the stack. While the gate is closed, answers and explanations
// are the head's alone, bit for bit; while it is open they are the stack's.
func TestClosedGateIsTheHeadAlone(t *testing.T) {
	for _, second := range []float64{0, 0.98} {
		cfg := gatedBeside(ensemble.LogitTrees)
		cfg.SecondHead = second
		m, alone := newOf(t, cfg), newOf(t, gatedBeside())
		p, q := m.NewPredictor(), alone.NewPredictor()
		closed, open, moves := 0, 0, 0
		was := false
		for i, ex := range lengths(1500, 1) {
			if i > 0 {
				gates := m.Gates()
				if len(gates) != 1 || gates[0].Body != BodyText || gates[0].Events != uint64(i) {
					t.Fatalf("after %d events: gates %+v", i, gates)
				}
				if gates[0].Open != was {
					was, moves = !was, moves+1
				}
			}
			got, why, err := p.Explain(&ex.Body)
			want, wantWhy, err2 := q.Explain(&ex.Body)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if scored, err := p.Predict(&ex.Body); err != nil || scored != got {
				t.Fatalf("%s: predicted %+v, explained %+v, %v", ex.ID, scored, got, err)
			}
			ready := i > 0 && m.submodels[ofText].stack.Ready()
			if !was {
				if got != want || !reflect.DeepEqual(why, wantWhy) {
					t.Fatalf("%s: the gate is closed: %+v %+v, the head alone %+v %+v", ex.ID, got, why, want, wantWhy)
				}
				if ready {
					closed++
				}
			} else {
				s := m.submodels[ofText]
				mean, variance := s.stack.Predict(&p.vectorizer.byKind[ofText].scratch, p.vectorizer.read(&ex.Body, s).event())
				if open++; got != inflated(mean, variance) || len(why) != len(wantWhy)+1 {
					t.Fatalf("%s: the gate is open: %+v with %d contributions", ex.ID, got, len(why))
				}
			}
			effect := apply(t, m, ex)
			apply(t, alone, ex)
			if i > 0 && effect.Prediction != got { // the first event makes its sub-model
				t.Fatalf("%s: scored %+v, and then %+v when it was learnt", ex.ID, got, effect.Prediction)
			}
		}
		if closed < 30 || open < 100 || moves < 2 {
			t.Errorf("second head %v: closed for %d events though ready, open for %d, moved %d times", second, closed, open, moves)
		}
		if len(alone.Gates()) != 0 {
			t.Errorf("the head alone has gates %+v", alone.Gates())
		}
	}
}

// An event is answered by what the events before it decided: neither its label nor who
// gave it changes its answer, although they may move the gate.
func TestGateDoesNotSeeTheEventItself(t *testing.T) {
	events := lengths(700, 2)
	m := newOf(t, gatedBeside(ensemble.LogitTrees))
	moved := 0
	for i, ex := range events {
		before := m.Gates()
		ready := i > 0 && m.submodels[ofText].stack.Ready()
		if i >= 90 && i < 150 || i > 650 {
			other, err := Restore(image(t, m))
			if err != nil {
				t.Fatal(err)
			}
			flipped := ex
			flipped.Spam, flipped.Source = !ex.Spam, "another"
			a, b := apply(t, other, flipped), apply(t, m, ex)
			if a.Prediction != b.Prediction {
				t.Errorf("%s: %+v with the other label, else %+v", ex.ID, a.Prediction, b.Prediction)
			}
			if ready && other.Gates()[0].Lead == m.Gates()[0].Lead {
				t.Errorf("%s: the label did not count: %+v", ex.ID, m.Gates())
			}
		} else {
			apply(t, m, ex)
		}
		if after := m.Gates(); len(before) > 0 && after[0].Open != before[0].Open {
			if moved++; after[0].Since != uint64(i+1) {
				t.Errorf("the gate moved at event %d, it says %+v", i+1, after)
			}
		}
	}
	if moved == 0 {
		t.Error("the gate has not moved")
	}
}

// Saved and read at any time, with withdrawals between, a model's gate goes on as if it
// had not stopped. A withdrawal does not move it.
func TestGateGoesOn(t *testing.T) {
	straight, broken := newOf(t, gatedBeside(ensemble.LogitTrees)), newOf(t, gatedBeside(ensemble.LogitTrees))
	var open []bool
	events := lengths(1100, 1)
	for i, ex := range events {
		apply(t, straight, ex)
		apply(t, broken, ex)
		if i%40 == 39 {
			before := straight.Gates()[0]
			apply(t, straight, unlearn("u"+ex.ID, ex))
			apply(t, broken, unlearn("u"+ex.ID, ex))
			if after := straight.Gates()[0]; after != before {
				t.Errorf("after %s was withdrawn: %+v, before %+v", ex.ID, after, before)
			}
		}
		if i%17 == 0 {
			b := image(t, broken)
			if !bytes.Equal(b, image(t, straight)) {
				t.Fatalf("after %d events: other bytes", i+1)
			}
			var err error
			if broken, err = Restore(b); err != nil {
				t.Fatal(err)
			}
		}
		if now := straight.Gates()[0].Open; len(open) == 0 || open[len(open)-1] != now {
			open = append(open, now)
		}
	}
	if len(open) < 3 {
		t.Errorf("open: %v: the gate has not opened and closed", open)
	}
}

// Vectors have no gate: their stack serves as soon as it is ready.
func TestVectorsHaveNoGate(t *testing.T) {
	m := newOf(t, besideCircles(0.98, ensemble.LogitTrees))
	apply(t, m, circles(120, 1)...)
	s := m.submodels[ofVector].stack
	if gates := m.Gates(); len(gates) != 0 || !s.Serves() {
		t.Errorf("gates %+v; serves: %v", gates, s.Serves())
	}
}

// A gate that no stream made is refused, by name.
func TestRestoreRefusesAGateThatNoStreamMade(t *testing.T) {
	for name, g := range map[string]stack.Gate{
		"behind":       {Open: true, Lead: -1, Since: 120, Served: 80},
		"served less":  {Open: true, Lead: 1, Since: 120, Served: 79},
		"from the end": {Open: true, Lead: 1, Since: 201, Served: 0},
	} {
		m := newOf(t, gatedBeside(ensemble.LogitTrees))
		apply(t, m, lengths(200, 1)...)
		b := image(t, m)
		was, _ := m.submodels[ofText].stack.Gate()
		at := bytes.Index(b, gateImage(was))
		if at < 0 {
			t.Fatal("the gate is not in the model's bytes as package stack draws it")
		}
		copy(b[at:], gateImage(g))
		binary.LittleEndian.PutUint64(b[len(b)-trailerSize:], xxhash.Sum64(b[:len(b)-trailerSize]))
		if _, err := Restore(b); err == nil || !strings.Contains(err.Error(), "gate: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// gateImage is the gate as package stack draws it.
func gateImage(g stack.Gate) []byte {
	open := uint64(0)
	if g.Open {
		open = 1
	}
	b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(g.Lead))
	for _, v := range []uint64{open, g.Since, g.Served} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Words add up where the stack answers for mail and text, with a second head and without.
// What an ensemble adds is no word's.
func TestWordsAddUpWhileTheGateIsOpen(t *testing.T) {
	for _, second := range []float64{0, 0.98} {
		cfg := gatedBeside(ensemble.LogitTrees)
		cfg.SecondHead = second
		m, open := newOf(t, cfg), 0
		for i, ex := range lengths(600, 1) {
			if m.submodels[ofText] != nil && m.submodels[ofText].stack.Serves() {
				if open++; open > 20 {
					break
				}
				a, err := m.own.Attribute(&ex.Body)
				if err != nil {
					t.Fatal(err)
				}
				sum, trees := 0.0, false
				for _, w := range a.Words {
					sum += w.Contribution
				}
				for _, c := range a.Rest {
					sum += c.Contribution
					trees = trees || c.Name == "ensemble: logit-trees"
				}
				if math.Abs(sum-a.Prediction.Mean) > 1e-9 || !trees || len(a.Words) == 0 {
					t.Errorf("second head %v, event %d: %d words and the rest %v sum to %v, the mean is %v", second, i, len(a.Words), a.Rest, sum, a.Prediction.Mean)
				}
			}
			apply(t, m, ex)
		}
		if open == 0 {
			t.Errorf("second head %v: the gate never opened", second)
		}
	}
}
