package text

import (
	"encoding"

	"hamlet/algos/feature"
)

// An Expert learns from an event's features. It gives a head up to MaxInputs numbers.
// All methods but Learn, Withdraw and UnmarshalBinary may be called concurrently.
type Expert interface {
	// Prefetch starts loading the memory that Score will read into the cache.
	Prefetch(v *View)

	// Score returns the answer to v: the zero Score if v has no features.
	Score(v *View) Score

	// Pool returns the answer of one expert that had learnt what all experts of like
	// learnt. like includes the receiver; all have the same Entry and table size.
	Pool(like []Expert, v *View) Score

	// Learn learns v with its label and the weight ω in (0, 1]. was is Score's answer
	// to v. It returns the weight in [0, 1] to pass to Withdraw; 0: nothing to withdraw.
	// grid rounds weights so that their float32 sums are exact.
	Learn(v *View, was Score, spam bool, ω float64) (counted float64)

	// Withdraw undoes a Learn exactly. It does nothing in an expert whose learning is
	// not a sum.
	Withdraw(v *View, spam bool, counted float64)

	encoding.BinaryAppender    // Entry.Size bytes
	encoding.BinaryUnmarshaler // of an expert of the same Entry and table size
}

// MaxInputs is how many inputs of a head one expert may have.
const MaxInputs = 3

// A Score is an expert's answer to one event.
type Score struct {
	LogOdds float64            // s, in nats; Learn computes its step from it
	Inputs  [MaxInputs]float64 // the head's inputs, len(Entry.Inputs) of them; each within ±10 (clip)

	// Surprise is how unlike all learnt events this one is, in nats; 0 without
	// Entry.Surprise.
	Surprise float64
}

// Parts are the parts of a body that lists read. Missing parts are empty.
type Parts struct {
	Head, Text []byte           // H and T of a message (package feature): T begins with the subject, at most 8,000 bytes
	Numbers    []feature.Number // of a vector: those with hashed names
}

// A View is what an expert sees of a body.
type View struct {
	feature.Sparse        // hashed features
	Bytes          []byte // of a message: the part that the features come from; valid until the next body is read
}

// A List reads a body into a View. Experts whose entries point to the same List share its
// View, so that a body is hashed once for all of them. Read overwrites the View. A
// hasher's indices are below 2^tableBits.
type List struct {
	Read func(h *feature.Hasher, v *View, p *Parts)
}

// openingBytes is how many bytes of T openingGrams reads.
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
	Opinion bool   // log-odds of spam: the head's prior averages all opinions; else the prior weight is 0
}

// An Entry registers an expert.
type Entry struct {
	Name   string  // in configurations
	Reads  *List   // what the expert sees
	Inputs []Input // 1 to MaxInputs
	New    func(tableBits int) Expert
	Size   func(tableBits int) int // bytes that AppendBinary appends

	// Surprise: the expert sets Score.Surprise. The covariate alarm watches the first
	// expert with a surprise. For vectors with dense names it watches the leverage.
	Surprise bool

	// Counts: Learn returns a weight for Withdraw. The model stores it for each event
	// that can be withdrawn.
	Counts bool
}

// The experts' names in configurations.
const (
	HeaderWords = "header-words"
	Text5Grams  = "text-5grams"
	TextWords   = "text-words"
	Opening     = "opening-4grams"
)

// Messages registers the experts that read mail and text. To add one, write a type that
// implements Expert (naivebayes.go counts, adagrad.go does not) and append its entry
// here. expert_test.go tests every entry. The entry determines everything else: the
// configuration's names and help, the head's inputs and prior, explanations, checkpoints,
// withdrawals and pooled answers. Default lists the experts that a model has by default.
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
