package model

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/stack"
	"hamlet/algos/text"
)

// features is one sub-model's view of a body. It is a buffer of one reader; the next body
// of its kind overwrites it.
type features struct {
	spec   *spec
	lists  []list       // the distinct lists of the experts
	views  []*text.View // each expert's view, that of its list
	scores []text.Score // each expert's score; zero while it does not exist

	frozenReader *frozenReader // of messages; nil without a frozen expert
	frozen       float64       // its expert's answer

	facts     [feature.FactCount]float64 // of a message
	dense     []float64                  // of a vector: the dense numbers, ±ln(1+|v|)
	nameCount float64                    // of a vector: ln(1+count of names that are not dense)

	x      []float64 // the head's inputs
	inputs []float64 // the inputs of ensembles and of the label-noise alarm

	head    belief     // of the head alone
	joint   Prediction // the stack's, if it was asked
	stacked bool       // the stack's prediction was served

	accused bool // whether the labels of the source that was learnt from contradict those of the others
	scratch stack.Scratch
}

// A list is a text.List with its view of the current body.
type list struct {
	*text.List
	view    *text.View
	from    *text.View // the view that view salts; nil: the list is read
	readers []int      // the experts that read it
}

// event returns the stack's inputs.
func (in *features) event() stack.Event {
	return stack.Event{X: in.x, Inputs: in.inputs, Mean: in.head.Mean, Variance: in.head.Variance}
}

func newFeatures(s *spec) *features {
	in := &features{
		spec:   s,
		scores: make([]text.Score, len(s.entries)),
		x:      make([]float64, s.layout.dim()),
		inputs: make([]float64, s.layout.raw),
	}
	if s.kind == ofVector {
		in.dense = make([]float64, len(s.cfg.Dense))
	}
	for k, e := range s.entries {
		i := slices.IndexFunc(in.lists, func(l list) bool { return l.List == e.Reads })
		if i < 0 {
			i = len(in.lists)
			l := list{List: e.Reads, view: new(text.View)}
			if j := slices.IndexFunc(in.lists, func(l list) bool { return l.List == e.Reads.Salts }); j >= 0 {
				l.from = in.lists[j].view
			}
			in.lists = append(in.lists, l)
		}
		in.lists[i].readers = append(in.lists[i].readers, k)
		in.views = append(in.views, in.lists[i].view)
	}
	in.frozenReader = newFrozenReader(s, in.lists)
	return in
}

// A reader turns bodies into features. It is not safe for concurrent use.
type reader struct {
	hashers [2]*feature.Hasher // by text.List.Bits
	skip    []string           // headers that are not read, sorted
	of      [kinds]*features
	parts   text.Parts // of the current body
	header  []byte     // H
	text    []byte     // T
	hashed  []feature.Number
	scratch []byte // bodyHash's buffer
}

func newReader(specs [kinds]*spec) *reader {
	cfg := specs[ofText].cfg
	r := &reader{skip: cfg.SkipHeaders}
	for bits := range r.hashers {
		r.hashers[bits] = feature.NewHasher(cfg.TableBits + bits)
	}
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
// before is loaded.
func (r *reader) features(b *Body, s *submodel) *features {
	in := r.of[kindOf(b)]
	if b.Message != nil {
		r.text = b.Message.AppendT(r.text[:0])
		r.header = b.Message.AppendH(r.header[:0], r.skip)
		r.parts = text.Parts{Tenant: b.Tenant, Head: r.header, Text: r.text}
		feature.Facts(in.facts[:], b.Message)
	} else {
		r.split(b.Vector, in)
		r.parts = text.Parts{Numbers: r.hashed}
	}
	clear(in.scores)
	scored := s != nil && s.experts != nil
	for i, l := range in.lists {
		if h := r.hashers[l.Bits]; l.from != nil {
			l.view.Salt(l.from, b.Tenant, h.TableBits())
		} else {
			l.Read(h, l.view, &r.parts)
		}
		if scored {
			s.tables[i].Prefetch(l.view.Index)
			if i > 0 {
				in.score(i-1, s)
			}
		}
	}
	in.frozen = in.frozenReader.score(&r.parts)
	if scored {
		in.score(len(in.lists)-1, s)
	}
	return in
}

// score scores list i by the experts that read it.
func (in *features) score(i int, s *submodel) {
	for _, k := range in.lists[i].readers {
		in.scores[k] = s.experts[k].Score(in.views[k])
	}
}

// split writes the dense numbers of v into in and the others into r.hashed.
func (r *reader) split(v []feature.Number, in *features) {
	names := in.spec.cfg.Dense
	r.hashed = r.hashed[:0]
	d, present := 0, 0
	for _, n := range v {
		if d < len(names) && n.Name == names[d] {
			in.dense[d] = feature.SignedLog(n.Value)
			d++
			continue
		}
		r.hashed = append(r.hashed, n)
		if n.Value != 0 { // 0 is the same as missing
			present++
		}
	}
	in.nameCount = logistic.Log1p(float64(present))
}

// bodyHashes are hashes of what was read of a body: of all, and of its text. A vector has
// one hash.
type bodyHashes struct{ all, text uint64 }

// bodyHashes hashes what was read of b, the last body read. What a withdrawal takes out of
// counts must be what was counted.
func (r *reader) bodyHashes(b *Body) bodyHashes {
	if b.Message != nil {
		text := xxhash.Sum64(r.parts.Text)
		return bodyHashes{xxhash.Sum64(r.parts.Head) ^ bits.RotateLeft64(text, 1), text}
	}
	r.scratch = r.scratch[:0]
	for _, n := range b.Vector {
		r.scratch = binary.LittleEndian.AppendUint32(r.scratch, uint32(len(n.Name)))
		r.scratch = append(r.scratch, n.Name...)
		r.scratch = binary.LittleEndian.AppendUint64(r.scratch, math.Float64bits(n.Value))
	}
	h := xxhash.Sum64(r.scratch)
	return bodyHashes{h, h}
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
