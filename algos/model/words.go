package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/text"
)

// A Word is a piece of a body and what it adds to the Mean of a Prediction, in nats.
//
// An expert's features are joined to the words on which they lie. A feature's contribution is
// shared equally by the places where it stands, and at each place by the words that it touches:
// a pair of words by both, an n-gram by one, two or three. An n-gram that touches no word goes
// to the marks that it touches, such as "!!!". A link is one word, whatever stands in it.
// Words of one Text and Where are one.
type Word struct {
	Text string // in lower case, in the bytes of the body; of a link, its host

	// Where is "text", "subject", "link", the name of a header field in lower case, "header"
	// for such a name itself, or "name" for a name in a vector.
	Where string

	Contribution float64

	// Shared: a feature of the word has the slot of another feature in this body, in some
	// expert's table. What the slot says may belong to the other.
	Shared bool
}

// InVector is where a word stands that is the name of a number.
const InVector = "name"

// An Attribution says what a Prediction's Mean is made of, in two ways: the Inputs sum to it,
// and so do Words and Rest together, up to rounding.
//
// A word's contribution is that of its features in each expert: their terms in the expert's
// input ([text.Expert.Terms]), times the weight of that input in the answer. The weight is
// that of the head, or of the stack with both heads, and includes the input's products with
// facts, which are multiples of it. The terms of an input that is clipped are scaled to sum to
// what is left.
type Attribution struct {
	Prediction Prediction
	Inputs     []Contribution // as Explain returns them
	Words      []Word         // all of them, largest absolute value first

	// Rest is what no word has, largest absolute value first: the bias, the facts, the
	// ensembles, and of an expert's input what its features do not say, such as the length of
	// the text. SD is 0.
	Rest []Contribution
}

// Attribute is Explain with the words of b. It takes some fifteen times as long.
func (p *Predictor) Attribute(b *Body) (a Attribution, err error) {
	if err := p.m.Check(b); err != nil {
		return Attribution{}, err
	}
	defer p.defect(&err)
	s := p.m.submodel(b)
	in := p.vectorizer.read(b, s)
	var shares apportioned
	a.Prediction, a.Inputs, shares = p.apportion(s, in)
	a.Words, a.Rest = p.vectorizer.words(b, in, shares, s)
	return a, nil
}

// An apportioned is the mean of an answer by what it came from.
type apportioned struct {
	experts [][text.MaxInputs]float64 // by the experts' inputs, the frozen expert last
	rest    []Contribution            // by name, what no expert gave
}

// apportion is explain with the answer by what it came from.
func (p *Predictor) apportion(s *submodel, in *features) (Prediction, []Contribution, apportioned) {
	prediction, names, contributions := p.contributed(s, in)
	a := apportioned{experts: make([][text.MaxInputs]float64, len(in.scores)+1)}
	var others []string
	var theirs []blr.Contribution
	for i, c := range contributions {
		if from := in.spec.layout.ref(i); from != noRef {
			a.experts[from.expert][from.input] += c.Mean
			continue
		}
		others, theirs = append(others, names[i]), append(theirs, blr.Contribution{Mean: c.Mean})
	}
	a.rest = joined(others, theirs)
	return prediction, joined(names, contributions), a
}

// words splits what the experts gave, and returns what no word has after the rest of shares.
// in is what r has read last, of b, for s.
func (r *vectorizer) words(b *Body, in *features, shares apportioned, s *submodel) ([]Word, []Contribution) {
	t := newTally(b, &in.parts)
	rest := slices.Clone(shares.rest)
	left := func(name string, v float64) {
		if math.Abs(v) > rounding {
			rest = append(rest, Contribution{Name: name, Contribution: v})
		}
	}
	var view text.View // what the lists read again; the terms need those of the tenant, in
	for _, l := range in.lists {
		h := r.hashers[l.Bits]
		t.trace(l.List, h, &view, &in.parts)
		for _, k := range l.experts {
			t.terms = t.terms[:0]
			if s != nil && s.experts != nil {
				t.terms = s.experts[k].Terms(t.terms, in.views[k])
			}
			for j, input := range in.spec.entries[k].Inputs {
				left(input.Name, t.add(j, shares.experts[k][j], in.scores[k].Inputs[j]))
			}
		}
		t.spread()
	}
	if f := in.spec.frozen(); f != nil {
		h := cmp.Or(r.frozen, r.hashers[text.FrozenReads.Bits])
		t.trace(text.FrozenReads, h, &view, &in.parts)
		t.terms = f.Terms(t.terms[:0], in.frozenView)
		left(frozenInput, t.add(0, shares.experts[len(in.scores)][0], in.frozen))
		t.spread()
	}
	rest = slices.DeleteFunc(rest, func(c Contribution) bool { return c.Contribution == 0 })
	slices.SortStableFunc(rest, func(a, b Contribution) int {
		return cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution))
	})
	return t.sorted(), rest
}

// rounding is how much of an expert's input may be lost to rounding, in nats.
const rounding = 1e-11
