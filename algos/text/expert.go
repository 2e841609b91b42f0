package text

import (
	"encoding"

	"hamlet/algos/feature"
	"hamlet/algos/internal/hugepages"
)

// An Expert learns from an event's features. It gives a head up to MaxInputs numbers.
// All methods but Learn, Withdraw and UnmarshalBinary may be called concurrently.
type Expert interface {
	// Score returns the answer to v: the zero Score if v has no features.
	Score(v *View) Score

	// Terms appends a Term for each element of v.Index: what it adds to the inputs of Score's
	// answer. The terms of an input sum to it before it is clipped, up to rounding. An input
	// that is no sum over features may have terms of 0.
	Terms(dst []Term, v *View) []Term

	// Learn learns v with its label and the weight ω in (0, 1], or up to 2 if the expert
	// counts. was is Score's answer to v. It returns the weight to pass to Withdraw, 0 or ω;
	// 0: nothing to withdraw. grid rounds weights so that their float32 sums are exact.
	Learn(v *View, was Score, spam bool, ω float64) (counted float64)

	// Withdraw undoes a Learn exactly. It does nothing in an expert whose learning is
	// not a sum.
	Withdraw(v *View, spam bool, counted float64)

	encoding.BinaryAppender    // Entry.Size bytes: what appendTotals appends, and those of column
	encoding.BinaryUnmarshaler // of an expert of the same Entry and table size

	// appendTotals appends what the expert holds beside its table, column. readTotals reads it, and
	// returns the bytes behind it.
	appendTotals(dst []byte) []byte
	readTotals(b []byte) (rest []byte, err error)
	column() Column
}

// EachPiece calls do with the bytes that e.AppendBinary appends, in order and in pieces of at most
// len(buf) bytes, so that they need not be in memory all at once. buf is scratch, of 8 kB at least. A
// piece is valid until do returns.
func EachPiece(e Expert, buf []byte, do func(piece []byte) error) error {
	if totals := e.appendTotals(buf[:0]); len(totals) > 0 {
		if err := do(totals); err != nil {
			return err
		}
	}
	return e.column().each(buf, do)
}

// Copy makes experts and their tables hold what others of the same entries and table bits hold.
func Copy(experts []Expert, tables []*Table, from []Expert, their []*Table) {
	for k, t := range tables {
		copy(t.pairs, their[k].pairs)
	}
	for k, e := range experts {
		if _, err := e.readTotals(from[k].appendTotals(nil)); err != nil {
			panic(err) // they have the same entry, and totals that an expert can have
		}
	}
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

// A Term is what one feature adds to each input of an expert.
type Term [MaxInputs]float64

// Parts are the parts of a body that lists read. Missing parts are empty.
type Parts struct {
	Tenant     string           // of the body; personal experts read it
	Head, Text []byte           // H and T of a message (package feature): T begins with the subject, at most 8,000 bytes
	Numbers    []feature.Number // of a vector: those with hashed names
}

// A View is what an expert sees of a body.
type View struct {
	feature.Sparse        // hashed features
	Bytes          []byte // of a message: the part that the features come from; valid until the next body is read

	lowered []byte // openingStrings' buffer; Bytes may be the caller's
}

// A List reads a body into a View. Experts whose entries point to the same List share its
// View and its Table, so that a body is hashed once for all of them and a feature read
// once. Read overwrites the View. The hasher's indices are below 2^(table bits + Bits).
type List struct {
	Bits int  // added to the configured table bits
	Part Part // what Read reads
	Read func(h *feature.Hasher, v *View, p *Parts)

	// Salts is nil except in a personal expert's list: Read's View is that of Salts after
	// [View.Salt].
	Salts *List
}

// A Part is the part of a body that a list reads.
type Part uint8

// The parts of a body.
const (
	OfHead    Part = iota // Parts.Head
	OfText                // Parts.Text
	OfNumbers             // Parts.Numbers
	PartCount
)

// headList returns a list of H.
func headList(bits int, read func(h *feature.Hasher, v *View, head []byte)) *List {
	return &List{Bits: bits, Part: OfHead, Read: func(h *feature.Hasher, v *View, p *Parts) { read(h, v, p.Head) }}
}

// textList returns a list of T.
func textList(bits int, read func(h *feature.Hasher, v *View, text []byte)) *List {
	return &List{Bits: bits, Part: OfText, Read: func(h *feature.Hasher, v *View, p *Parts) { read(h, v, p.Text) }}
}

// Trace reads a body as Read does, with the indices that no tenant has salted, and writes
// into t where the features stand: their elements are those of Read's View. Places in H and
// T are counted from their beginning.
func (l *List) Trace(t *feature.Trace, h *feature.Hasher, v *View, p *Parts) {
	if l.Salts != nil {
		l = l.Salts
	}
	h.Trace(t)
	defer h.Trace(nil)
	l.Read(h, v, p)
	t.Resolve(v.Index)
}

// How many bytes of T some lists read.
const (
	openingBytes = 2000 // openingGrams
	stringBytes  = 1000 // openingStrings
	lengthBytes  = 400  // wordsByLength
)

// The lists of the nine experts and of those that read the same.
var (
	headerWords  = headList(0, words)
	header5Grams = headList(0, grams(5))
	textWords    = textList(1, words)
	text3Grams   = textList(0, grams(3))
	text4Grams   = textList(1, grams(4))
	text5Grams   = textList(1, grams(5))
	textShapes   = textList(0, func(h *feature.Hasher, v *View, text []byte) {
		v.Index, v.Bytes = h.Shapes(v.Index[:0], text, 5), text
	})
	openingStrings = textList(0, func(h *feature.Hasher, v *View, text []byte) {
		v.lowered = feature.Lower(v.lowered[:0], text[:min(len(text), stringBytes)])
		v.Bytes = v.lowered
		v.Index = h.Strings(v.Index[:0], v.Bytes, longestString)
	})
	wordsByLength = textList(0, func(h *feature.Hasher, v *View, text []byte) {
		v.Bytes = text[:min(len(text), lengthBytes)]
		v.Index = h.WordsByLength(v.Index[:0], v.Bytes, len(text))
	})
)

// The lists of the lean experts and of vectors.
var (
	leanWords    = textList(0, words)
	lean5Grams   = textList(0, grams(5))
	openingGrams = textList(0, func(h *feature.Hasher, v *View, text []byte) {
		opening(h, v, text[:min(len(text), openingBytes)])
	})
	numbers = &List{Bits: 0, Part: OfNumbers, Read: func(h *feature.Hasher, v *View, p *Parts) {
		h.Numbers(&v.Sparse, p.Numbers)
	}}
)

var opening = grams(4)

func words(h *feature.Hasher, v *View, part []byte) {
	v.Index, v.Bytes = h.Words(v.Index[:0], part), part
}

func grams(n int) func(h *feature.Hasher, v *View, part []byte) {
	return func(h *feature.Hasher, v *View, part []byte) {
		v.Index, v.Bytes = h.Grams(v.Index[:0], part, n), part
	}
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
	New    func(table Column) Expert
	Size   func(tableBits int) int // bytes that AppendBinary appends; tableBits includes Reads.Bits

	// Surprise: the expert sets Score.Surprise. The covariate alarm watches the first
	// expert with a surprise. For vectors with dense names it watches the leverage.
	Surprise bool

	// Counts: Learn returns a weight for Withdraw. The model stores it for each event
	// that can be withdrawn.
	Counts bool

	// CanBePersonal: features meet in the table only, so that [Personal] can separate those
	// of tenants.
	CanBePersonal bool

	// Mean and Variance are the prior of an opinion's weight in the head, times the number
	// of opinions.
	Mean, Variance float64

	// Crossed: the head also has the products of the expert's inputs with two facts.
	Crossed bool

	// EarlyGain is how much larger the head's input is while few events have been learnt.
	EarlyGain float64

	// Witness: the trust of a label depends on the expert's inputs and not only on the
	// head.
	Witness bool
}

// Experts returns new experts for the entries, and the tables of the distinct lists in the
// order of first occurrence. The tables lie side by side, in huge pages if there are any.
func Experts(entries []*Entry, tableBits int) (experts []Expert, tables []*Table) {
	experts = make([]Expert, len(entries))
	size := 0
	for _, e := range entries {
		size += 1 << (tableBits + e.Reads.Bits)
	}
	pairs := make([]pair, size)
	hugepages.Advise(pairs)
	for k, e := range entries {
		if experts[k] != nil {
			continue
		}
		var readers []int
		for j, other := range entries {
			if other.Reads == e.Reads {
				readers = append(readers, j)
			}
		}
		n := len(readers) << (tableBits + e.Reads.Bits)
		table := &Table{pairs: pairs[:n:n], stride: len(readers)}
		pairs = pairs[n:]
		tables = append(tables, table)
		for column, j := range readers {
			experts[j] = entries[j].New(table.Column(column))
		}
	}
	return experts, tables
}

// The experts' names in configurations.
const (
	HeaderWords       = "header-words"
	Text4GramsBayes   = "text-4grams-bayes"
	TextWordsBayes    = "text-words-bayes"
	Text5Grams        = "text-5grams"
	TextWords         = "text-words"
	TextWordsRobust   = "text-words-robust"
	Text3Grams        = "text-3grams"
	Header5Grams      = "header-5grams"
	TextBytes         = "text-bytes"
	WordsByLength     = "words-by-length"
	HeaderWordsRobust = "header-words-robust"
	Text5GramsRobust  = "text-5grams-robust"
	TextShapes        = "text-shapes"

	LeanHeaderWords = "lean-header-words"
	LeanText5Grams  = "lean-text-5grams"
	LeanTextWords   = "lean-text-words"
	LeanOpening     = "lean-opening-4grams"
)

// Messages registers the experts that read mail and text. To add one, write a type that
// implements Expert (naivebayes.go counts, adagrad.go does not) and append its entry
// here. expert_test.go tests every entry. The entry determines everything else: the
// configuration's names and help, the head's inputs and prior, explanations, checkpoints,
// and withdrawals.
var Messages = []*Entry{
	full(adaGrad(HeaderWords, headerWords, "header words", AdaGradConfig{Rate: 1, Margin: 8})),
	full(naiveBayes(Text4GramsBayes, text4Grams, "text 4-grams (naive Bayes)",
		NaiveBayesConfig{Shrinkage: 10, Margin: 20, Inputs: 2, Surprise: true})),
	full(naiveBayes(TextWordsBayes, textWords, "text words (naive Bayes)",
		NaiveBayesConfig{Shrinkage: 2, Margin: 7, Inputs: 3})),
	full(adaGrad(Text5Grams, text5Grams, "text 5-grams", AdaGradConfig{Rate: 1, Margin: 8})),
	full(adaGrad(TextWords, textWords, "text words", AdaGradConfig{Rate: 1, Margin: 8})),
	full(adaGrad(TextWordsRobust, textWords, "text words (robust)", AdaGradConfig{Rate: 1, Margin: 8, Robust: true})),
	full(adaGrad(Text3Grams, text3Grams, "text 3-grams", AdaGradConfig{Rate: 0.5, Margin: 8})),
	full(adaGrad(Header5Grams, header5Grams, "header 5-grams", AdaGradConfig{Rate: 1, Margin: 8})),
	full(byteModel(TextBytes, openingStrings, "text bytes")),
	full(adaGrad(WordsByLength, wordsByLength, "words by length of text", AdaGradConfig{Rate: 1, Margin: 8})),
	full(adaGrad(HeaderWordsRobust, headerWords, "header words (robust)",
		AdaGradConfig{Rate: 1, Margin: 8, Robust: true})),
	full(adaGrad(Text5GramsRobust, text5Grams, "text 5-grams (robust)", AdaGradConfig{Rate: 1, Margin: 8, Robust: true})),
	full(adaGrad(TextShapes, textShapes, "text shapes", AdaGradConfig{Rate: 1, Margin: 8})),

	adaGrad(LeanHeaderWords, headerWords, "header words", AdaGradConfig{Rate: 1, Root: true}),
	adaGrad(LeanText5Grams, lean5Grams, "text 5-grams", AdaGradConfig{Rate: 0.5, Root: true}),
	adaGrad(LeanTextWords, leanWords, "text words", AdaGradConfig{Rate: 1, Root: true}),
	naiveBayes(LeanOpening, openingGrams, "opening 4-grams (naive Bayes)",
		NaiveBayesConfig{Shrinkage: 10, Margin: 7, Inputs: 1, Surprise: true}),
}

// Vectors registers the experts that read the hashed names of vectors. A model has all
// of them.
var Vectors = []*Entry{
	adaGrad("names", numbers, "hashed names", AdaGradConfig{Rate: 1}),
	naiveBayes("names-bayes", numbers, "hashed names (naive Bayes)",
		NaiveBayesConfig{Shrinkage: 2, Margin: 7, Inputs: 3, Surprise: true}),
	adaGrad("names-damped", numbers, "hashed names, damped", AdaGradConfig{Rate: 1, Damp: 0.2}),
}

// The prior of an opinion's weight. A prior around the mean of the k opinions makes a head
// better than that mean from the first message; a prior around 0 makes it worse.
const (
	opinionMean, opinionVariance = 0.8, 0.4
	fullMean, fullVariance       = 1.2, 0.25
)

// fullGain is the full set's EarlyGain. After few messages an expert knows few features and
// says too little: the scale of its answer is right only later. (MEASURED.md)
const fullGain = 2

// full completes the entry of an expert of the full set.
func full(e *Entry) *Entry {
	e.Mean, e.Variance, e.Crossed, e.Witness, e.EarlyGain = fullMean, fullVariance, true, true, fullGain
	return e
}

func adaGrad(name string, reads *List, input string, cfg AdaGradConfig) *Entry {
	return &Entry{
		Name: name, Reads: reads, Inputs: []Input{{Name: input, Opinion: true}},
		New:  func(table Column) Expert { return NewAdaGrad(table, cfg) },
		Size: AdaGradSize, CanBePersonal: true, Mean: opinionMean, Variance: opinionVariance,
	}
}

func naiveBayes(name string, reads *List, input string, cfg NaiveBayesConfig) *Entry {
	inputs := []Input{{input, true}, {input + ", loudest", true}, {input + ", difference of rates", true}}
	return &Entry{
		Name: name, Reads: reads, Inputs: inputs[:cfg.Inputs],
		New:  func(table Column) Expert { return NewNaiveBayes(table, cfg) },
		Size: NaiveBayesSize, Surprise: cfg.Surprise, Counts: true, CanBePersonal: true, Mean: opinionMean,
		Variance: opinionVariance,
	}
}

func byteModel(name string, reads *List, input string) *Entry {
	return &Entry{
		Name: name, Reads: reads, Inputs: []Input{{input, true}, {input + ", mean", true}},
		New:  func(table Column) Expert { return NewByteModel(table) },
		Size: ByteModelSize, Counts: true,
	}
}

// The sets of experts that have a name.
const (
	Full = "full" // the default
	Lean = "lean" // a third of the cost
)

// Set returns the names of the experts in a set, nil if there is no such set. Three experts of
// the second recipe are not in the full set: beside the others text-3grams, text-words and
// text-5grams cost a fifth and gain nothing (MEASURED.md).
func Set(name string) []string {
	switch name {
	case Full:
		return []string{
			HeaderWords, Text4GramsBayes, TextWordsBayes, TextWordsRobust, Header5Grams, TextBytes,
			WordsByLength, HeaderWordsRobust, Text5GramsRobust, TextShapes,
		}
	case Lean:
		return []string{LeanHeaderWords, LeanText5Grams, LeanTextWords, LeanOpening}
	}
	return nil
}

// Default returns the names of the experts that read mail and text unless a
// configuration says otherwise.
func Default() []string { return Set(Full) }

// Names returns the names of all experts that read mail and text.
func Names() (all []string) {
	for _, e := range Messages {
		all = append(all, e.Name)
	}
	return all
}

// CanBePersonal returns the names of the experts that can be personal.
func CanBePersonal() (names []string) {
	for _, e := range Messages {
		if e.CanBePersonal {
			names = append(names, e.Name)
		}
	}
	return names
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
