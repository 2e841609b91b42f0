package model

import (
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// An expert is one of package text's learners. Score may be called concurrently
// with itself.
type expert interface {
	Prefetch(index []uint32)
	Score(f feature.Sparse) text.Score
	Learn(f feature.Sparse, was text.Score, spam bool, ω float64) bool
	Size() int
	AppendBinary(dst []byte) ([]byte, error)
	UnmarshalBinary(b []byte) error
}

// A half is what a model knows about one kind of body.
type half struct {
	events  uint64 // learnt
	labels  *trust.Labels
	head    *blr.Posterior
	experts []expert // vectors: none before the first hashed name
	sites   sites    // of the last events, which can be withdrawn

	columns *feature.Standardiser // vectors only: of the dense names

	monitor *drift.Monitor // nil: no alarms
	counter int            // the expert whose surprise the monitor looks at, or noCounter
	stack   *stack         // nil: the head answers alone
}

// A textExpert says how an expert reads a message and what it is.
type textExpert struct {
	name string // for Explain
	part func(r *reader) []byte
	read func(h *feature.Hasher, dst []uint32, part []byte) []uint32
	make func(tableBits int) expert
	size func(tableBits int) int // bytes of its table
}

// openingBytes is how much of T the opening's expert reads.
const openingBytes = 2000

var textExperts = map[string]textExpert{
	HeaderWords: {
		name: "header words",
		part: func(r *reader) []byte { return r.h },
		read: (*feature.Hasher).Words,
		make: func(bits int) expert { return text.NewAdaGrad(bits, 1) },
		size: text.AdaGradSize,
	},
	Text5Grams: {
		name: "text 5-grams",
		part: func(r *reader) []byte { return r.t },
		read: func(h *feature.Hasher, dst []uint32, part []byte) []uint32 { return h.Grams(dst, part, 5) },
		make: func(bits int) expert { return text.NewAdaGrad(bits, 0.5) },
		size: text.AdaGradSize,
	},
	TextWords: {
		name: "text words",
		part: func(r *reader) []byte { return r.t },
		read: (*feature.Hasher).Words,
		make: func(bits int) expert { return text.NewAdaGrad(bits, 1) },
		size: text.AdaGradSize,
	},
	Opening: {
		name: "opening 4-grams (naive Bayes)",
		part: func(r *reader) []byte { return r.t[:min(len(r.t), openingBytes)] },
		read: func(h *feature.Hasher, dst []uint32, part []byte) []uint32 { return h.Grams(dst, part, 4) },
		make: func(bits int) expert { return text.NewNaiveBayes(bits) },
		size: text.NaiveBayesSize,
	},
}

// A prior is N(mean, diag(1/precision)) over a head's inputs.
type prior struct{ mean, precision []float64 }

// The head's prior, for k experts: pulled towards the mean of their log-odds it
// beats that mean from the first message; left free it loses to it (measured:
// SpamAssassin in time order, three shuffles, sms).
const (
	pull           = 0.8 // mean of an expert's weight, times k
	pullVariance   = 0.4 // its variance, times k
	textBias       = 0.1 // variances
	textFact       = 0.4
	vectorVariance = 0.3 // of the bias, the dense inputs and the count of names
)

func (p *prior) add(mean, variance float64) {
	p.mean = append(p.mean, mean)
	p.precision = append(p.precision, 1/variance)
}

func (p *prior) addExperts(k int) {
	for range k {
		p.add(pull/float64(k), pullVariance/float64(k))
	}
}

// textPrior is for x = [1, experts, facts], and the recent share of spam if that
// is an input.
func textPrior(cfg Config) (p prior) {
	p.add(0, textBias)
	p.addExperts(len(cfg.TextExperts))
	for range feature.FactCount {
		p.add(0, textFact)
	}
	if cfg.SpamShare {
		p.add(0, textFact)
	}
	return p
}

// vectorExperts is how many experts read the hashed names, and vectorCounts which
// of them counts.
const (
	vectorExperts = 2
	vectorCounts  = 1
)

// vectorPrior is for x = [1, dense, experts, ln(1+count of hashed names)].
func vectorPrior(cfg Config) (p prior) {
	p.add(0, vectorVariance)
	for range cfg.Dense {
		p.add(0, vectorVariance)
	}
	p.addExperts(vectorExperts)
	p.add(0, vectorVariance)
	return p
}

// inputNames are what Explain calls the inputs of each head.
func inputNames(cfg Config) (ofText, ofVector []string) {
	ofText = append(ofText, "bias")
	for _, name := range cfg.TextExperts {
		ofText = append(ofText, textExperts[name].name)
	}
	for _, name := range feature.FactNames {
		ofText = append(ofText, "fact: "+name)
	}
	if cfg.SpamShare {
		ofText = append(ofText, "recent share of spam")
	}
	ofVector = append(append(ofVector, "bias"), cfg.Dense...)
	ofVector = append(ofVector, "hashed names", "hashed names (naive Bayes)", "count of hashed names")
	return ofText, ofVector
}

func newHead(p prior, cfg Head, halfLife float64) *blr.Posterior {
	head, err := blr.New(blr.Config{
		Dim: len(p.mean), Mean: p.mean, Precision: p.precision, Site: siteByName[cfg.Site], HalfLife: halfLife,
	})
	if err != nil {
		panic(err) // the prior is ours
	}
	return head
}

// noCounter is the counter of a half in which no expert counts all there is: one
// with dense names, or one whose text experts are others. Its monitor looks at the
// head's leverage.
const noCounter = -1

// textCounter and vectorCounter return which of a half's experts counts, or
// noCounter.
func textCounter(cfg Config) int { return slices.Index(cfg.TextExperts, Opening) }

func vectorCounter(cfg Config) int {
	if len(cfg.Dense) > 0 {
		return noCounter
	}
	return vectorCounts
}

// monitorConfig returns the configuration of a monitor without a head.
func (a Alarms) monitorConfig(dim, counter int) drift.MonitorConfig {
	c := drift.MonitorConfig{
		Surprise: counter != noCounter,
		Noise: drift.LabelNoiseConfig{
			Dim: dim, Drop: a.Drop, Confirmed: a.Confirmed, FlipRate: a.FlipRate, Clear: a.Clear,
		},
		Covariate: drift.CovariateConfig{Threshold: a.Covariate},
		Concept:   drift.PageHinkleyConfig{Threshold: a.Concept},
	}
	if c.Surprise {
		c.Covariate.Window = drift.SurpriseWindow
	}
	return c
}

// newMonitor returns the monitor of a head with the prior before, whose ensembles
// would see dim inputs; nil if the configuration has none.
func newMonitor(cfg Config, before prior, dim, counter int) *drift.Monitor {
	if cfg.Alarms.Off {
		return nil
	}
	c := cfg.Alarms.monitorConfig(dim, counter)
	if dim <= MaxDenseByDefault {
		c.Head = newHead(before, Head{Site: SiteRVGA}, blr.HalfLife(drift.MonitorMemory))
	}
	m, err := drift.NewMonitor(c)
	if err != nil {
		panic(err) // validate has asked
	}
	return m
}

func newTextExperts(cfg Config) (experts []expert) {
	for _, name := range cfg.TextExperts {
		experts = append(experts, textExperts[name].make(cfg.TableBits))
	}
	return experts
}

func newVectorExperts(cfg Config) []expert {
	return []expert{text.NewAdaGrad(cfg.TableBits, 1), text.NewNaiveBayes(cfg.TableBits)}
}

func newTextHalf(cfg Config) *half {
	h := newHalf(cfg, textPrior(cfg), cfg.TextHead, cfg.TextEnsembles, textMemory, textCounter(cfg))
	h.experts = newTextExperts(cfg)
	return h
}

func newVectorHalf(cfg Config) *half {
	h := newHalf(cfg, vectorPrior(cfg), cfg.VectorHead, cfg.VectorEnsembles, vectorMemory, vectorCounter(cfg))
	h.columns = feature.NewStandardiser(len(cfg.Dense))
	return h
}

// newHalf returns a half without experts and columns. Its ensembles and its noise
// watch see what the head sees, but the constant.
func newHalf(cfg Config, before prior, head Head, ensembles []string, ρ float64, counter int) *half {
	inputs := len(before.mean)
	return &half{
		labels:  trust.New(),
		head:    newHead(before, head, float64(head.HalfLife)),
		sites:   newSites(inputs, stackerInputs(ensembles, cfg.SecondHead), cfg.SecondHead > 0),
		monitor: newMonitor(cfg, before, inputs-1, counter),
		counter: counter,
		stack:   newStack(cfg, ensembles, before, head, inputs-1, ρ),
	}
}

// learn absorbs a labelled body, read as in and predicted. It returns the event's
// site, without the hashes that name it and its body; its trust is the
// probability, by the head alone, that the label is true.
func (h *half) learn(in *reading, ex *Example, policy trust.Policy) (s site) {
	spam, was := ex.Spam, in.head
	y := -1.0
	if spam {
		y = 1
	}
	w := h.labels.Weigh(logistic.Sigmoid(y*was.LogOdds), ex.Source, policy)
	s.trust = w.Phi
	s.Record = h.head.Update(in.x, y, w.Head)
	for k, e := range h.experts {
		learnt := e.Learn(in.features[k], in.scores[k], spam, w.Expert)
		if _, counts := e.(*text.NaiveBayes); counts && learnt {
			s.counted = w.Expert
		}
	}
	if h.columns != nil {
		h.columns.Observe(in.dense)
	}
	if h.stack != nil {
		s.joint, s.second = h.stack.learn(in, row{label: y, phi: s.trust, id: ex.ID, source: ex.Source}, w.Head, in.joined)
	}
	h.labels.Observe(ex.Source, s.trust, spam)
	h.events++
	return s
}

// inputs is how many inputs ensembles and the label-noise alarm see.
func (h *half) inputs() int { return h.head.Dim() - 1 }
