package model

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/planted"
	"hamlet/algos/stack"
	"hamlet/algos/text"
)

// An Extract is what a model reads of a body before it asks its tables: words, n-grams, facts
// and hashes. It is a pure function of the body and of the model's configuration, so that
// [Extractor]s can make it in other goroutines, for bodies that the model has yet to learn. It
// is memory that is used again: some 20 bytes for each byte that is read of a mail. The zero
// value is ready.
type Extract struct {
	byKind [kindCount]*kindExtract // nil before the first body of the kind
}

// of returns the extract of b by a sub-model of this spec, or nil if r is another one.
func (r *Extract) of(b *Body, s *spec) *kindExtract {
	if r == nil {
		return nil
	}
	if one := r.byKind[s.kind]; one != nil && one.spec == s && one.isOf(b) {
		return one
	}
	return nil
}

// A kindExtract is an Extract of one kind of body.
type kindExtract struct {
	spec  *spec
	lists []list       // the distinct lists of the experts
	views []*text.View // each expert's view, that of its list
	parts text.Parts

	facts     [feature.FactCount]float64 // of a message
	dense     []float64                  // of a vector: the dense numbers, ±ln(1+|v|)
	nameCount float64                    // of a vector: ln(1+count of names that are not dense)

	frozenView *text.View // what the frozen expert reads; nil without one
	frozen     float64    // its answer

	message *feature.Message // of the body
	vector  []feature.Number
	hashed  bool       // hashes is of the body
	hashes  bodyHashes // see bodyHashes

	// Buffers.
	header, text []byte
	numbers      []feature.Number
	scratch      []byte // bodyHashes'
}

// A list is a text.List with its view of the current body.
type list struct {
	*text.List
	view    *text.View
	from    *text.View // the view that view salts; nil: the list is read
	experts []int      // the experts that read it
}

func newKindExtract(s *spec) *kindExtract {
	in := &kindExtract{spec: s}
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
		in.lists[i].experts = append(in.lists[i].experts, k)
		in.views = append(in.views, in.lists[i].view)
	}
	if s.frozen() != nil {
		if k := s.likeFrozen(); k >= 0 {
			in.frozenView = in.views[k]
		} else {
			in.frozenView = new(text.View)
		}
	}
	return in
}

// isOf reports whether b is the body that was read.
func (in *kindExtract) isOf(b *Body) bool {
	if in.message != b.Message || in.parts.Tenant != b.Tenant || len(in.vector) != len(b.Vector) {
		return false
	}
	return len(b.Vector) == 0 || &in.vector[0] == &b.Vector[0]
}

// An Extractor makes Extracts. It is not safe for concurrent use, but several may be used at
// once, and beside their model.
type Extractor struct {
	specs   [kindCount]*spec
	hashers [2]*feature.Hasher // by text.List.Bits
	frozen  *feature.Hasher    // of the frozen expert; nil: it reads what another expert reads, or is absent
}

// NewExtractor returns an Extractor for m. It uses nothing of m that changes.
func (m *Model) NewExtractor() *Extractor { return newExtractor(m.specs) }

func newExtractor(specs [kindCount]*spec) *Extractor {
	r := &Extractor{specs: specs}
	for bits := range r.hashers {
		r.hashers[bits] = feature.NewHasher(specs[ofText].cfg.TableBits + bits)
	}
	if s := specs[ofText]; s.frozen() != nil && s.likeFrozen() < 0 {
		r.frozen = feature.NewHasher(s.frozen().Bits())
	}
	return r
}

// Read reads b into dst and sets b.Extract to it. dst and what b refers to must stay as they
// are until the model has applied b and the caller is done with its Effect. If [Model.Check]
// would refuse b, it does nothing. If reading b panics it does nothing either: the model meets
// the same panic, and Apply returns it.
func (r *Extractor) Read(dst *Extract, b *Body) {
	if check(b, r.specs[ofVector].cfg.Dense) != "" {
		return
	}
	k := kindOf(b)
	defer func() {
		if recover() != nil {
			*r, dst.byKind[k] = *newExtractor(r.specs), nil
		}
	}()
	if in := dst.byKind[k]; in == nil || in.spec != r.specs[k] {
		dst.byKind[k] = newKindExtract(r.specs[k])
	}
	in := dst.byKind[k]
	r.begin(in, b)
	for i := range in.lists {
		r.readList(in, i)
	}
	r.readFrozen(in)
	in.bodyHashes()
	b.Extract = dst
}

// begin reads all of b but the lists and what the frozen expert reads.
func (r *Extractor) begin(in *kindExtract, b *Body) {
	in.message, in.vector, in.hashed = b.Message, b.Vector, false
	in.parts = text.Parts{Tenant: b.Tenant}
	if b.Message == nil {
		in.split(b.Vector)
		in.parts.Numbers = in.numbers
		return
	}
	in.text = b.Message.AppendT(in.text[:0])
	in.header = b.Message.AppendH(in.header[:0], in.spec.cfg.SkipHeaders)
	in.parts.Head, in.parts.Text = in.header, in.text
	feature.Facts(in.facts[:], b.Message)
	planted.Read(in.text)
}

// readList reads list i of the body that begin has read. The lists before have been read.
func (r *Extractor) readList(in *kindExtract, i int) {
	l := &in.lists[i]
	if h := r.hashers[l.Bits]; l.from != nil {
		l.view.Salt(l.from, in.parts.Tenant, h.TableBits())
	} else {
		l.Read(h, l.view, &in.parts)
	}
}

// readFrozen lets the frozen expert answer, if there is one. All lists have been read.
func (r *Extractor) readFrozen(in *kindExtract) {
	if in.frozenView == nil {
		return
	}
	if r.frozen != nil {
		text.FrozenReads.Read(r.frozen, in.frozenView, &in.parts)
	}
	in.frozen = in.spec.frozen().Score(in.frozenView)
}

// split takes the dense numbers out of v.
func (in *kindExtract) split(v []feature.Number) {
	names := in.spec.cfg.Dense
	in.numbers = in.numbers[:0]
	d, present := 0, 0
	for _, n := range v {
		if d < len(names) && n.Name == names[d] {
			in.dense[d] = feature.SignedLog(n.Value)
			d++
			continue
		}
		in.numbers = append(in.numbers, n)
		if n.Value != 0 { // 0 is the same as missing
			present++
		}
	}
	in.nameCount = logistic.Log1p(float64(present))
}

// bodyHashes are hashes of what was read of a body: of all, and of its text. A vector has
// one hash.
type bodyHashes struct{ all, text uint64 }

// bodyHashes hashes what was read. What a withdrawal takes out of counts must be what was
// counted.
func (in *kindExtract) bodyHashes() bodyHashes {
	if in.hashed {
		return in.hashes
	}
	in.hashed = true
	if in.message != nil {
		text := xxhash.Sum64(in.parts.Text)
		in.hashes = bodyHashes{xxhash.Sum64(in.parts.Head) ^ bits.RotateLeft64(text, 1), text}
		return in.hashes
	}
	in.scratch = in.scratch[:0]
	for _, n := range in.vector {
		in.scratch = binary.LittleEndian.AppendUint32(in.scratch, uint32(len(n.Name)))
		in.scratch = append(in.scratch, n.Name...)
		in.scratch = binary.LittleEndian.AppendUint64(in.scratch, math.Float64bits(n.Value))
	}
	h := xxhash.Sum64(in.scratch)
	in.hashes = bodyHashes{h, h}
	return in.hashes
}

// features is one sub-model's view of a body. It is a buffer of one vectorizer; the next body
// of its kind overwrites it.
type features struct {
	*kindExtract              // of the current body: own, or one made ahead
	own          *kindExtract // the vectorizer's buffer

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
	own := newKindExtract(s)
	return &features{
		kindExtract: own, own: own,
		scores: make([]text.Score, len(s.entries)),
		x:      make([]float64, s.layout.dim()),
		inputs: make([]float64, s.layout.raw),
	}
}

// A vectorizer turns bodies into features. It is not safe for concurrent use.
type vectorizer struct {
	*Extractor
	byKind [kindCount]*features

	// reading is true while the body is read: what runs depends on the body and the
	// configuration alone, and nothing has changed yet that the model keeps.
	reading bool
}

func newVectorizer(specs [kindCount]*spec) *vectorizer {
	r := &vectorizer{Extractor: newExtractor(specs)}
	for k, s := range specs {
		r.byKind[k] = newFeatures(s)
	}
	return r
}

// read returns the features of b, scored by s. b must pass Check. s may be nil.
func (r *vectorizer) read(b *Body, s *submodel) *features {
	in := r.features(b, s)
	in.spec.layout.fill(in, s)
	return in
}

// features reads b and scores it by the experts of s, but does not fill the head's inputs.
// s may be nil: the scores are zero then. While a list is hashed, its table is loaded. It is
// scored when the next list is hashed. What was read ahead is not read again.
func (r *vectorizer) features(b *Body, s *submodel) *features {
	in := r.byKind[kindOf(b)]
	ahead := b.Extract.of(b, in.spec)
	if ahead != nil {
		in.kindExtract = ahead
	} else {
		in.kindExtract = in.own
		r.reading = true
		r.begin(in.own, b)
	}
	clear(in.scores)
	scored := s != nil && s.experts != nil
	for i := range in.lists {
		loaded, h := 0, r.hashers[in.lists[i].Bits]
		if ahead == nil {
			if scored {
				h.LoadAhead(s.tables[i].Memory())
			}
			r.reading = true
			r.readList(in.own, i)
			r.reading = false
			loaded = h.Loaded()
		}
		if scored {
			s.tables[i].Prefetch(in.lists[i].view.Index[loaded:])
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
// leaves all others. The vectorizer's buffers are made again: they may be half written.
func (r *vectorizer) defect(effect *Effect, err *error) {
	if !r.reading {
		return
	}
	value := recover()
	*effect, *err = Effect{}, Recovered(readBody, value)
	*r = *newVectorizer(r.specs)
}

// score scores list i by the experts that read it.
func (in *features) score(i int, s *submodel) {
	for _, k := range in.lists[i].experts {
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
