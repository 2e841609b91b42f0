package model

import (
	"math"

	"hamlet/algos/stack"
	"hamlet/algos/text"
)

// features is one sub-model's view of a body. It is a buffer of one reader; the next body
// of its kind overwrites it.
type features struct {
	*reading          // of the current body: own, or one made ahead
	own      *reading // the reader's buffer

	scores []text.Score // each expert's score; zero while it does not exist

	x      []float64 // the head's inputs
	inputs []float64 // the inputs of ensembles and of the label-noise alarm

	head    belief     // of the head alone
	joint   Prediction // the stack's, if it was asked
	stacked bool       // the stack's prediction was served

	accused bool // whether the labels of the source that was learnt from contradict those of the others
	scratch stack.Scratch
}

// event returns the stack's inputs.
func (in *features) event() stack.Event {
	return stack.Event{X: in.x, Inputs: in.inputs, Mean: in.head.Mean, Variance: in.head.Variance}
}

func newFeatures(s *spec) *features {
	own := newReading(s)
	return &features{
		reading: own, own: own,
		scores: make([]text.Score, len(s.entries)),
		x:      make([]float64, s.layout.dim()),
		inputs: make([]float64, s.layout.raw),
	}
}

// A reader turns bodies into features. It is not safe for concurrent use.
type reader struct {
	*Reader
	of [kinds]*features

	// reading is true while the body is read: what runs depends on the body and the
	// configuration alone, and nothing has changed yet that the model keeps.
	reading bool
}

func newReader(specs [kinds]*spec) *reader {
	r := &reader{Reader: newBodyReader(specs)}
	for k, s := range specs {
		r.of[k] = newFeatures(s)
	}
	return r
}

// read returns the features of b, scored by s. b must pass Check. s may be nil.
func (r *reader) read(b *Body, s *submodel) *features {
	in := r.features(b, s)
	in.spec.layout.fill(in, s)
	return in
}

// features reads b and scores it by the experts of s, but does not fill the head's inputs.
// s may be nil: the scores are zero then. While a list is hashed, the table of the list
// before is loaded. What was read ahead is not read again.
func (r *reader) features(b *Body, s *submodel) *features {
	in := r.of[kindOf(b)]
	ahead := b.Reading.of(b, in.spec)
	if ahead != nil {
		in.reading = ahead
	} else {
		in.reading = in.own
		r.reading = true
		r.begin(in.own, b)
	}
	clear(in.scores)
	scored := s != nil && s.experts != nil
	for i := range in.lists {
		if ahead == nil {
			r.reading = true
			r.readList(in.own, i)
			r.reading = false
		}
		if scored {
			s.tables[i].Prefetch(in.lists[i].view.Index)
			if i > 0 {
				in.score(i-1, s)
			}
		}
	}
	if ahead == nil {
		r.reading = true
		r.readFrozen(in.own)
		r.reading = false
	}
	if scored {
		in.score(len(in.lists)-1, s)
	}
	return in
}

const readBody = "read this body" // in a Defect

// defect is deferred around all that reads a body. It turns a panic of reading into err, and
// leaves all others. The reader's buffers are made again: they may be half written.
func (r *reader) defect(effect *Effect, err *error) {
	if !r.reading {
		return
	}
	value := recover()
	*effect, *err = Effect{}, Recovered(readBody, value)
	*r = *newReader(r.specs)
}

// score scores list i by the experts that read it.
func (in *features) score(i int, s *submodel) {
	for _, k := range in.lists[i].readers {
		in.scores[k] = s.experts[k].Score(in.views[k])
	}
}

// check returns the reason of Model.Check's error, "" for none.
func check(b *Body, dense []string) (reason string) {
	switch {
	case (b.Message == nil) == (b.Vector == nil):
		return "body: exactly one of a message and a vector is wanted"
	case b.Message != nil:
		return ""
	}
	d := 0
	for i, n := range b.Vector {
		if math.IsNaN(n.Value) || math.IsInf(n.Value, 0) {
			return "vector: " + quote(n.Name) + " is not a finite number"
		}
		if i > 0 && n.Name <= b.Vector[i-1].Name {
			return "vector: " + quote(n.Name) + " is given twice or out of order"
		}
		if d < len(dense) && n.Name >= dense[d] {
			if n.Name != dense[d] {
				break
			}
			d++
		}
	}
	if d < len(dense) {
		return "vector: the dense name " + quote(dense[d]) + " is missing; its value is 0 if it has none"
	}
	return ""
}
