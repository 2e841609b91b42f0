package model

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/text"
)

// A reading is a body as one half of a model sees it: what its experts read and
// said, and the head's input.
type reading struct {
	features []feature.Sparse // of each expert
	scores   []text.Score     // of each expert; zero where there is none yet
	dense    []float64        // vectors: the dense inputs before standardising
	x        []float64
	inputs   []float64 // of ensembles and noise watch: x without the 1, dense inputs as they came, to float32

	head    Prediction // what the half's head said alone
	joined  bool       // whether its stack was asked
	joining joining
}

// A reader holds the scratch for reading bodies.
type reader struct {
	hasher  *feature.Hasher
	h, t    []byte // H and T of the message at hand; t is our memory, h is not
	hashed  []feature.Number
	scratch []byte
	text    reading
	vector  reading
	recipe  []textExpert // of text.features
	skip    []string     // headers that are not read, sorted
	kept    []byte       // H without them
	share   bool         // whether the last input of text is the recent share of spam
}

func newReader(cfg Config) *reader {
	r := &reader{hasher: feature.NewHasher(cfg.TableBits), skip: cfg.SkipHeaders}
	k, facts := len(cfg.TextExperts), feature.FactCount
	if cfg.SpamShare {
		r.share, facts = true, facts+1
	}
	r.text = reading{
		features: make([]feature.Sparse, k),
		scores:   make([]text.Score, k),
		x:        make([]float64, 1+k+facts),
		inputs:   make([]float64, k+facts),
	}
	for _, name := range cfg.TextExperts {
		r.recipe = append(r.recipe, textExperts[name])
	}
	d := len(cfg.Dense)
	r.vector = reading{
		features: make([]feature.Sparse, vectorExperts),
		scores:   make([]text.Score, vectorExperts),
		dense:    make([]float64, d),
		x:        make([]float64, 1+d+vectorExperts+1),
		inputs:   make([]float64, d+vectorExperts+1),
	}
	return r
}

// score lets h's experts, as far as it has any, answer what in holds.
func (in *reading) score(h *half, inputs []float64) {
	clear(in.scores)
	if h != nil {
		for k, e := range h.experts {
			in.scores[k] = e.Score(in.features[k])
		}
	}
	for k, s := range in.scores {
		inputs[k] = s.Input
	}
}

// head returns H, without the headers that are skipped. It is ours or m's.
func (r *reader) head(m *feature.Message) []byte {
	if len(r.skip) == 0 {
		return m.H()
	}
	r.kept = r.kept[:0]
	for rest := m.Head; len(rest) > 0 && len(r.kept) < feature.HeadBytes; {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line = rest[:end+1]
		}
		rest = rest[len(line):]
		name, _, _ := bytes.Cut(line, []byte{':'})
		if bytes.HasPrefix(line, []byte("From ")) {
			name = []byte(FromLine)
		}
		if _, skipped := slices.BinarySearchFunc(r.skip, name, func(s string, name []byte) int {
			return strings.Compare(s, string(name))
		}); !skipped {
			r.kept = append(r.kept, line...)
		}
	}
	return r.kept[:min(len(r.kept), feature.HeadBytes)]
}

// readMessage reads m for the text half h, nil if there is none yet.
func (r *reader) readMessage(m *feature.Message, h *half) *reading {
	in := &r.text
	r.h, r.t = r.head(m), m.AppendT(r.t[:0])
	for k, e := range r.recipe {
		in.features[k].Index = e.read(r.hasher, in.features[k].Index[:0], e.part(r))
		if h != nil {
			h.experts[k].Prefetch(in.features[k].Index) // they come while the next is hashed
		}
	}
	r.h = nil
	experts := len(r.recipe)
	in.x[0] = 1
	in.score(h, in.x[1:1+experts])
	feature.Facts(in.x[1+experts:1+experts+feature.FactCount], m)
	r.setShare(h)
	in.setInputs()
	return in
}

// setShare writes the recent share of spam of the text half h, nil if there is
// none yet, where it is an input.
func (r *reader) setShare(h *half) {
	if !r.share {
		return
	}
	input := 0.0
	if h != nil {
		input = h.labels.SpamRateLogit()
	}
	r.text.x[len(r.text.x)-1] = input
}

// readVector reads v for the vector half h, nil if there is none yet. v has
// passed Check.
func (r *reader) readVector(v []feature.Number, names []string, h *half) *reading {
	in := &r.vector
	hashed, d := r.hashed[:0], 0
	for _, n := range v {
		if d < len(names) && n.Name == names[d] {
			in.dense[d] = feature.SignedLog(n.Value)
			d++
		} else {
			hashed = append(hashed, n)
		}
	}
	r.hashed = hashed
	r.hasher.Numbers(&in.features[0], hashed)
	in.features[1] = in.features[0]

	in.x[0] = 1
	dense, rest := in.x[1:1+len(names)], in.x[1+len(names):]
	clear(dense)
	if h != nil {
		h.columns.Standardise(dense, in.dense)
	}
	in.score(h, rest[:vectorExperts])
	rest[vectorExperts] = logistic.Log1p(float64(present(hashed)))
	in.setInputs()
	return in
}

// present counts the numbers that are not 0, which is the same as missing.
func present(numbers []feature.Number) (n int) {
	for _, number := range numbers {
		if number.Value != 0 {
			n++
		}
	}
	return n
}

// check is Model.Check without the type of its error.
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

// setInputs writes what ensembles and the noise watch see. Trees and stumps only
// ask for the order of a column's values, which running standardisation would mix
// up; float32 is what their windows keep.
func (in *reading) setInputs() {
	copy(in.inputs, in.x[1:])
	copy(in.inputs, in.dense)
	for j, v := range in.inputs {
		in.inputs[j] = float64(float32(v))
	}
}
