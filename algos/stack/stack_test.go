package stack

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/ensemble"
	"hamlet/algos/internal/codec"
)

const inputs = 2 // of ensembles; the heads have a bias more

// A subject is a head with its stack, taught a stream that no line divides.
type subject struct {
	t       *testing.T
	head    *blr.Posterior
	stack   *Stack
	scratch Scratch
	events  uint64
	past    []taught
}

type taught struct{ stacker, second blr.Site }

func newPosterior(t *testing.T, ρ float64) *blr.Posterior {
	t.Helper()
	cfg := blr.Config{Dim: 1 + inputs, Precision: []float64{10, 3, 3}}
	if ρ < 1 {
		cfg.HalfLife = blr.HalfLife(ρ)
	}
	p, err := blr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newStack(t *testing.T, kinds ...ensemble.Kind) *Stack {
	return New(Config{Ensembles: kinds, Inputs: inputs, Window: 150, Rebuild: 100, Memory: 0.995, Gated: true, Second: newPosterior(t, 0.98)})
}

func newSubject(t *testing.T, kinds ...ensemble.Kind) *subject {
	return &subject{t: t, head: newPosterior(t, 1), stack: newStack(t, kinds...)}
}

func (s *subject) learn(n int, seed uint64) (rebuilds []Rebuild) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		x := []float64{1, r.NormFloat64(), r.NormFloat64()}
		y := math.Copysign(1, x[1]*x[1]+x[2]*x[2]-1.4)
		e := Event{X: x, Inputs: x[1:]}
		e.Mean, e.Variance = s.head.Moments(x)
		answers := Answers{Head: e.Mean}
		if s.stack.Ready() {
			answers.Stack, _ = s.stack.Predict(&s.scratch, e)
		}
		var rec taught
		rec.stacker, rec.second = s.stack.Learn(&s.scratch, e, Row{Label: y, Phi: 0.9, ID: fmt.Sprint("e", s.events), Source: "desk"}, 0.9, answers, s.events+1)
		// Records refer to scratch memory: who keeps them copies X.
		rec.stacker.X, rec.second.X = clone(rec.stacker.X), clone(rec.second.X)
		s.past = append(s.past, rec)
		s.head.Update(x, y, 0.9)
		s.events++
		rebuilds = append(rebuilds, s.stack.Tick(nil, s.events, nil)...)
	}
	return rebuilds
}

func clone(x []float64) []float64 { return append([]float64(nil), x...) }

func written(s *Stack) []byte {
	w := codec.NewWriter(nil)
	s.Write(w)
	b, err := w.Finish()
	if err != nil {
		panic(err)
	}
	return b
}

// The schedule by the words of the package's documentation, count by count.
func TestRebuildsStartWhenATenthIsNew(t *testing.T) {
	for _, every := range []int{50, 100, 250, 500, 2000} {
		s := New(Config{Ensembles: []ensemble.Kind{ensemble.AdaBoost}, Inputs: inputs, Window: 150, Rebuild: every, Memory: 0.995})
		last, pending := uint64(0), uint64(0)
		for count := uint64(1); count <= 30_000; count++ {
			step := min(uint64(every), max(50, count/10/50*50))
			starts := count%step == 0
			if starts && pending > 0 {
				s.started = pending
				if got := s.due(); got != count {
					t.Fatalf("R = %d: started at %d, due at %d, want %d", every, pending, got, count)
				}
			}
			if starts {
				if last > 0 && (count-last > uint64(every) || count-last > max(50, count/10)) {
					t.Fatalf("R = %d: rebuilds start at %d and %d", every, last, count)
				}
				last, pending = count, count
			}
			if got := s.pendingAt(count); got != pending {
				t.Fatalf("R = %d: after %d events the pending rebuild started at %d, want %d", every, count, got, pending)
			}
		}
	}
}

// Saved and read wherever, with a rebuild pending or not, a Stack goes on bit for bit.
func TestReadGoesOn(t *testing.T) {
	kinds := []ensemble.Kind{ensemble.LogitTrees, ensemble.AdaBoost}
	straight, broken := newSubject(t, kinds...), newSubject(t, kinds...)
	rebuilds := 0
	for i := range 60 {
		rebuilds += len(straight.learn(9, uint64(i)))
		broken.learn(9, uint64(i))
		b := written(broken.stack)
		if !bytes.Equal(b, written(straight.stack)) {
			t.Fatalf("after %d events: read, it went on differently", broken.events)
		}
		broken.stack = newStack(t, kinds...)
		r := codec.NewReader(b, nil)
		broken.stack.Read(r, broken.events)
		if err := r.Close(); err != nil {
			t.Fatalf("after %d events: %v", broken.events, err)
		}
	}
	if want := 2 * 9; rebuilds != want || !straight.stack.Serves() {
		t.Errorf("%d rebuilds of 540 events, want %d; serves: %v", rebuilds, want, straight.stack.Serves())
	}
	if g, ok := straight.stack.Gate(); !ok || !g.Open || g.Since < 100 {
		t.Errorf("gate %+v, %v: it has not moved while the stack was saved and read", g, ok)
	}
}

// Without a gate a Stack serves as soon as it is ready, and what it learns is the same.
func TestWithoutAGate(t *testing.T) {
	gated, free := newSubject(t, ensemble.AdaBoost), newSubject(t, ensemble.AdaBoost)
	free.stack.gated = false
	waited := 0
	for i := range 40 {
		gated.learn(10, uint64(i))
		free.learn(10, uint64(i))
		if free.stack.Serves() != free.stack.Ready() || free.stack.Ready() != gated.stack.Ready() {
			t.Fatalf("after %d events: free serves %v, ready %v", free.events, free.stack.Serves(), free.stack.Ready())
		}
		if gated.stack.Ready() && !gated.stack.Serves() {
			waited++
		}
	}
	if waited == 0 || !gated.stack.Serves() {
		t.Errorf("the gate was closed at %d times; serves: %v", waited, gated.stack.Serves())
	}
	if g, ok := free.stack.Gate(); ok || g != (Gate{}) {
		t.Errorf("without a gate there is %+v, %v", g, ok)
	}
	gated.stack.gated = false
	if !bytes.Equal(written(gated.stack), written(free.stack)) {
		t.Error("the gate has changed what the stack learnt")
	}
}

// Unlearn changes nothing before it is applied, and nothing on an error.
func TestUnlearnIsAppliedAsAWhole(t *testing.T) {
	s := newSubject(t, ensemble.AdaBoost)
	s.learn(230, 1)
	was := written(s.stack)
	rec := s.past[220]
	apply, err := s.stack.Unlearn(rec.stacker, rec.second, 9, s.events+1)
	if err != nil || !bytes.Equal(written(s.stack), was) {
		t.Fatalf("before it is applied: %v, or other bytes", err)
	}
	gate, _ := s.stack.Gate()
	apply()
	if g, _ := s.stack.Gate(); g != gate || g == (Gate{}) {
		t.Errorf("a withdrawal has moved the gate from %+v to %+v", gate, g)
	}
	if bytes.Equal(written(s.stack), was) || s.stack.window.rows[220].withdrawn != s.events+1 {
		t.Error("applied, it has changed nothing")
	}
	was = written(s.stack)
	rec.second.H = 0.6 // a site of power 2 has at most ½
	if _, err := s.stack.Unlearn(rec.stacker, rec.second, 9, s.events+1); err == nil || !bytes.Equal(written(s.stack), was) {
		t.Errorf("a record that no head made: error %v, or other bytes", err)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *subject)
		want   string
	}{
		"unchanged":                     {func(*subject) {}, ""},
		"another rebuild":               {func(s *subject) { s.stack.started = 150 }, "a rebuild started at 150"},
		"no rebuild":                    {func(s *subject) { s.stack.started = 0 }, "a rebuild started at 0"},
		"a stacker of another prior":    {func(s *subject) { s.stack.stacker = newPosterior(s.t, 1) }, "stacker: "},
		"a second head of other events": {func(s *subject) { s.stack.second = newPosterior(s.t, 0.98) }, "second head of 0 events, want 230"},
		"an ensemble of another kind": {func(s *subject) {
			other := newSubject(s.t, ensemble.LogitTrees)
			other.learn(230, 1)
			s.stack.built[0] = other.stack.built[0]
		}, "an ensemble logit-trees"},
		"a gate open and far behind":    {func(s *subject) { s.stack.gate.Open, s.stack.gate.Lead = true, -1 }, "gate: "},
		"a lead that no stack has":      {func(s *subject) { s.stack.gate.Lead = math.NaN() }, "gate: "},
		"a row trusted beyond belief":   {func(s *subject) { s.stack.window.rows[3].Phi = 1.5 }, "slot 3 is not an event"},
		"an input that is infinite":     {func(s *subject) { s.stack.window.inputs[3] = float32(math.Inf(1)) }, "not finite"},
		"a ring that goes on elsewhere": {func(s *subject) { s.stack.window.next = 7 }, "goes on at 7"},
	} {
		s := newSubject(t, ensemble.AdaBoost)
		s.learn(230, 1)
		c.change(s)
		r := codec.NewReader(written(s.stack), nil)
		newStack(t, ensemble.AdaBoost).Read(r, s.events)
		if err := r.Close(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	s := newSubject(t, ensemble.AdaBoost)
	s.learn(60, 1)
	b := written(s.stack)
	for n := 0; n < len(b); n += 53 {
		r := codec.NewReader(b[:n], nil)
		if newStack(t, ensemble.AdaBoost).Read(r, s.events); r.Close() == nil {
			t.Errorf("%d of %d bytes: no error", n, len(b))
		}
	}
}

// A panic in a rebuild is its failure, by any Runner: the event at which it is due is not to blame.
func TestAPanicFailsTheRebuild(t *testing.T) {
	kinds := []ensemble.Kind{ensemble.LogitTrees, ensemble.BBLR}
	results := build(kinds, &ensemble.Window{Dim: 2, Labels: make([]float64, 3)})
	if len(results) != 2 {
		t.Fatalf("%d results of 2 ensembles", len(results))
	}
	for _, r := range results {
		if r.Ensemble != nil || r.Err == nil || !strings.HasPrefix(r.Err.Error(), "a defect of hamlet: rebuild ensembles: ensemble: a window of 0 inputs, ") {
			t.Errorf("%+v", r)
		}
	}
}
