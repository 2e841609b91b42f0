package text

import (
	"encoding"

	"hamlet/algos/feature"
)

// An Expert learns what an event's features say. It reads a View and gives a head up
// to MaxInputs numbers. All its methods but Learn, Withdraw and UnmarshalBinary may be
// called concurrently with themselves and with one another.
type Expert interface {
	// Prefetch asks for the memory that Score will read. It changes nothing.
	Prefetch(v *View)

	// Score answers v. A view without features is answered by the zero Score.
	Score(v *View) Score

	// Pool answers v as one expert would that had learnt what all of like have
	// learnt. They come from one Entry and have tables of one size, and the receiver
	// is one of them. It changes none.
	Pool(like []Expert, v *View) Score

	// Learn learns v with its label and the weight ω in (0, 1]. was is what Score
	// said of v. It returns the weight that Withdraw takes back, in [0, 1], 0 if there
	// is nothing to take back. grid makes sums of weights in float32 exact.
	Learn(v *View, was Score, spam bool, ω float64) (counted float64)

	// Withdraw takes back what Learn counted, to the last bit. An expert whose learning
	// is not a sum keeps a trace of the event, and does nothing here.
	Withdraw(v *View, spam bool, counted float64)

	encoding.BinaryAppender    // Entry.Size bytes
	encoding.BinaryUnmarshaler // of an expert of the same Entry and table size
}

// MaxInputs is how many inputs of a head one expert may have.
const MaxInputs = 3

// A Score is an expert's answer to one event.
type Score struct {
	LogOdds float64            // s: what the expert learns from, nats
	Inputs  [MaxInputs]float64 // what it says to the head, as many as Entry.Inputs has; each within ±10 (clip)

	// Surprise is how unlike all that the expert learnt the event is, in nats; 0 from
	// an expert whose Entry has no surprise.
	Surprise float64
}

// Parts are the parts of a body that lists read. Those that a body does not have are
// empty.
type Parts struct {
	Head, Text []byte           // H and T of a message (package feature): T begins with the subject, at most 8,000 bytes
	Numbers    []feature.Number // of a vector: those with hashed names
}

// A View is what an expert sees of a body.
type View struct {
	feature.Sparse        // hashed features
	Bytes          []byte // of a message: the part that the features come from; valid until the next body is read
}

// A List says how a body is read into a View. Experts whose entries point to one List
// share its View, so that a body is hashed once for all of them. The View is used
// again: Read overwrites what the last body left. An index means what the list and its
// experts agree on; the hasher's are below 2^tableBits.
type List struct {
	Read func(h *feature.Hasher, v *View, p *Parts)
}

// openingBytes is how much of T the list of openings reads.
const openingBytes = 2000

// The lists.
var (
	headerWords  = &List{func(h *feature.Hasher, v *View, p *Parts) { v.words(h, p.Head) }}
	textWords    = &List{func(h *feature.Hasher, v *View, p *Parts) { v.words(h, p.Text) }}
	text5Grams   = &List{func(h *feature.Hasher, v *View, p *Parts) { v.grams(h, p.Text, 5) }}
	openingGrams = &List{func(h *feature.Hasher, v *View, p *Parts) {
		v.grams(h, p.Text[:min(len(p.Text), openingBytes)], 4)
	}}
	numbers = &List{func(h *feature.Hasher, v *View, p *Parts) { h.Numbers(&v.Sparse, p.Numbers) }}
)

func (v *View) words(h *feature.Hasher, part []byte) {
	v.Index, v.Bytes = h.Words(v.Index[:0], part), part
}

func (v *View) grams(h *feature.Hasher, part []byte, n int) {
	v.Index, v.Bytes = h.Grams(v.Index[:0], part, n), part
}

// An Input is one input that an expert gives to a head.
type Input struct {
	Name    string // what an explanation calls it
	Opinion bool   // log-odds of spam: the head's prior expects the mean of all opinions; else 0 is expected
}

// An Entry registers an expert.
type Entry struct {
	Name   string  // in configurations
	Reads  *List   // what the expert sees
	Inputs []Input // 1 to MaxInputs
	New    func(tableBits int) Expert
	Size   func(tableBits int) int // bytes that AppendBinary appends

	// Surprise: Score.Surprise says how unlike all that was learnt an event is. The
	// covariate alarm looks at the first such expert of a model without dense names.
	Surprise bool

	// Counts: Learn returns a weight that Withdraw takes back. A model keeps it for
	// each event that can be withdrawn.
	Counts bool
}

// The experts' names in configurations.
const (
	HeaderWords = "header-words"
	Text5Grams  = "text-5grams"
	TextWords   = "text-words"
	Opening     = "opening-4grams"
)

// Messages registers the experts that read mail and text. To add one, write a type
// that is an Expert (naivebayes.go is one that counts, adagrad.go one that does not)
// and add its entry here, at the end. Laws that every entry obeys are in
// expert_test.go. All else follows from the entry: the names that a configuration takes and their order in its help, the head's
// inputs and their prior, explanations, tables and their sizes in checkpoints,
// withdrawals, pooled answers. Whether a model has the expert by default is
// Default's to say.
var Messages = []*Entry{
	adaGrad(HeaderWords, headerWords, "header words", 1),
	adaGrad(Text5Grams, text5Grams, "text 5-grams", 0.5),
	adaGrad(TextWords, textWords, "text words", 1),
	naiveBayes(Opening, openingGrams, "opening 4-grams (naive Bayes)"),
}

// Vectors registers the experts that read the hashed names of vectors. A model has all
// of them.
var Vectors = []*Entry{
	adaGrad("names", numbers, "hashed names", 1),
	naiveBayes("names-bayes", numbers, "hashed names (naive Bayes)"),
}

func adaGrad(name string, reads *List, input string, rate float64) *Entry {
	return &Entry{
		Name: name, Reads: reads, Inputs: []Input{{Name: input, Opinion: true}},
		New: func(bits int) Expert { return NewAdaGrad(bits, rate) }, Size: AdaGradSize,
	}
}

func naiveBayes(name string, reads *List, input string) *Entry {
	return &Entry{
		Name: name, Reads: reads, Inputs: []Input{{Name: input, Opinion: true}},
		New: func(bits int) Expert { return NewNaiveBayes(bits) }, Size: NaiveBayesSize,
		Surprise: true, Counts: true,
	}
}

// Default returns the names of the experts that read mail and text unless a
// configuration says otherwise.
func Default() []string { return []string{HeaderWords, Text5Grams, TextWords, Opening} }

// Names returns the names of all experts that read mail and text.
func Names() (all []string) {
	for _, e := range Messages {
		all = append(all, e.Name)
	}
	return all
}

// ByName returns the entry of an expert that reads mail and text, nil if there is none.
func ByName(name string) *Entry {
	for _, e := range Messages {
		if e.Name == name {
			return e
		}
	}
	return nil
}
