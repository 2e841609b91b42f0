package model

import (
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/text"
)

// A group is a run of similar inputs of a head. textInputs and vectorInputs list a head's
// groups. The inputs' names, prior, sizes and offsets are computed from the list, for the
// heads, ensembles, alarms and explanations. To add inputs, add a group.
type group struct {
	names          []string // one per input, for explanations, which add inputs of one name
	mean, variance float64  // prior of each input's weight

	// fill writes the current body's inputs into dst. s is nil before the sub-model's
	// first event; inputs that depend on s are 0 then.
	fill func(dst []float64, in *features, s *submodel)

	// raw returns the inputs of ensembles and of the label-noise alarm; nil: the same
	// as the head's.
	raw func(in *features) []float64

	constant bool // the bias: not an input of ensembles
	product  bool // of other inputs: not an input of ensembles
	witness  bool // the trust of a label depends on it

	// refs says for each input which input of an expert it is, or is a multiple of; nil:
	// none of them is. The words of a body share these inputs.
	refs []inputRef
}

// A inputRef is an input of an expert. The expert len(spec.entries) is the frozen one.
type inputRef struct{ expert, input int }

// noRef is the ref of an input that is no expert's.
var noRef = inputRef{expert: noExpert}

// The priors of the heads. The experts' entries hold those of opinions.
const (
	textBias       = 0.1  // variance
	textFact       = 0.4  // variance
	productWeight  = 0.01 // variance of a product of an expert's input and a fact
	vectorVariance = 0.3  // variance of the bias, the dense inputs and the count of names
)

// textInputs lists x = [1, experts, frozen expert, facts, rate of spam, products of experts and facts].
func textInputs(cfg Config) []group {
	groups := []group{bias(textBias)}
	experts := textExperts(cfg)
	groups = append(groups, expertInputs(experts, cfg.frozen, textFact)...)
	facts := group{
		variance: textFact,
		fill:     func(dst []float64, in *features, _ *submodel) { copy(dst, in.facts[:]) },
	}
	for _, name := range feature.FactNames {
		facts.names = append(facts.names, "fact: "+name)
	}
	groups = append(groups, facts)
	if cfg.SpamShare {
		groups = append(groups, group{
			names: []string{"recent share of spam"}, variance: textFact,
			fill: func(dst []float64, _ *features, s *submodel) {
				dst[0] = 0
				if s != nil {
					dst[0] = s.labels.SpamRateLogit()
				}
			},
		})
	}
	return append(groups, productInputs(experts)...)
}

// productInputs makes two groups of each crossed expert: its inputs times the fact of HTML,
// and its inputs times the length of the text, u = clip((f+½)/1.5, ±1) with f the fact of
// its length. So the head weights an expert by what it reads. A product has the name of its
// input: an explanation adds it to the input.
func productInputs(experts []*text.Entry) (groups []group) {
	for k, e := range experts {
		if !e.Crossed {
			continue
		}
		for _, fact := range []func(in *features) float64{
			func(in *features) float64 { return in.facts[feature.FactHTML] },
			func(in *features) float64 { return max(-1, min(1, (in.facts[feature.FactTextBytes]+0.5)/1.5)) },
		} {
			g := group{
				variance: productWeight, product: true,
				fill: func(dst []float64, in *features, _ *submodel) {
					f := fact(in)
					for j := range dst {
						dst[j] = float64(f * in.scores[k].Inputs[j])
					}
				},
			}
			for j, input := range e.Inputs {
				g.names, g.refs = append(g.names, input.Name), append(g.refs, inputRef{k, j})
			}
			groups = append(groups, g)
		}
	}
	return groups
}

// vectorInputs lists x = [1, dense, experts, ln(1+count of hashed names)].
func vectorInputs(cfg Config) []group {
	groups := []group{bias(vectorVariance), {
		names: cfg.Dense, variance: vectorVariance,
		// Trees use the order of a column's values. Running standardisation changes it.
		raw: func(in *features) []float64 { return in.dense },
		fill: func(dst []float64, in *features, s *submodel) {
			clear(dst)
			if s != nil {
				s.columns.Standardise(dst, in.dense)
			}
		},
	}}
	groups = append(groups, expertInputs(text.Vectors, nil, vectorVariance)...)
	return append(groups, group{
		names: []string{"count of hashed names"}, variance: vectorVariance,
		fill: func(dst []float64, in *features, _ *submodel) { dst[0] = in.nameCount },
	})
}

func bias(variance float64) group {
	return group{
		names: []string{"bias"}, variance: variance, constant: true,
		fill: func(dst []float64, _ *features, _ *submodel) { dst[0] = 1 },
	}
}

// expertInputs makes a group of each input of the experts, and one of the frozen expert
// unless it is nil. That is one more opinion, with the prior of the first expert's. other is
// the prior variance of inputs that are not opinions.
func expertInputs(experts []*text.Entry, frozen *text.Frozen, other float64) (groups []group) {
	opinions := 0.0
	if frozen != nil {
		opinions = 1
	}
	for _, e := range experts {
		for _, input := range e.Inputs {
			if input.Opinion {
				opinions++
			}
		}
	}
	for k, e := range experts {
		for j, input := range e.Inputs {
			g := group{
				names: []string{input.Name}, refs: []inputRef{{k, j}}, variance: other, witness: e.Witness && input.Opinion,
				fill: func(dst []float64, in *features, s *submodel) {
					dst[0] = float64(early(e.EarlyGain, s) * in.scores[k].Inputs[j])
				},
			}
			if input.Opinion {
				g.mean, g.variance = e.Mean/opinions, e.Variance/opinions
			}
			groups = append(groups, g)
		}
	}
	if frozen != nil {
		e := experts[0]
		groups = append(groups, group{
			names: []string{frozenInput}, refs: []inputRef{{len(experts), 0}}, mean: e.Mean / opinions,
			variance: e.Variance / opinions, witness: e.Witness,
			fill: func(dst []float64, in *features, _ *submodel) { dst[0] = in.frozen },
		})
	}
	return groups
}

// earlyEvents is the number of events in which the part of an expert's input that is only
// for the start falls by 1/e. From lateEvents on it is less than half of 1's last bit, for
// gains below e⁴.
const earlyEvents, lateEvents = 30, 41 * earlyEvents

// early returns the factor 1 + gain·e^(−t/30) of an expert's input, with t the events that s
// has learnt; 1 if s is nil.
func early(gain float64, s *submodel) float64 {
	if gain == 0 || s == nil || s.events >= lateEvents {
		return 1
	}
	return 1 + float64(gain*logistic.Exp(-float64(s.events)/earlyEvents))
}

// A prior is N(mean, diag(1/precision)) over a head's inputs.
type prior struct{ mean, precision []float64 }

// A layout is a head's groups and what is computed from them.
type layout struct {
	groups []group
	names  []string
	refs   []inputRef
	prior  prior
	raw    int // number of inputs of ensembles and of the label-noise alarm

	witnesses []int // inputs on which the trust of a label depends
}

func newLayout(groups []group) *layout {
	l := &layout{groups: groups}
	for _, g := range groups {
		for i, name := range g.names {
			from := noRef
			if g.refs != nil {
				from = g.refs[i]
			}
			l.refs = append(l.refs, from)
			if g.witness {
				l.witnesses = append(l.witnesses, len(l.names))
			}
			l.names = append(l.names, name)
			l.prior.mean = append(l.prior.mean, g.mean)
			l.prior.precision = append(l.prior.precision, 1/g.variance)
			if !g.constant && !g.product {
				l.raw++
			}
		}
	}
	return l
}

// ref returns the ref of input i of the head. Of what follows the inputs in an
// explanation, it is noRef.
func (l *layout) ref(i int) inputRef {
	if i >= len(l.refs) {
		return noRef
	}
	return l.refs[i]
}

func (l *layout) dim() int { return len(l.names) }

// fill writes the head's inputs into in.x and the ensembles' inputs into in.inputs. The
// latter are rounded to float32, as in the ensembles' windows.
func (l *layout) fill(in *features, s *submodel) {
	x, inputs := in.x, in.inputs
	for i := range l.groups {
		g := &l.groups[i]
		n := len(g.names)
		g.fill(x[:n], in, s)
		if !g.constant && !g.product {
			seen := x[:n]
			if g.raw != nil {
				seen = g.raw(in)
			}
			for j, v := range seen {
				inputs[j] = float64(float32(v))
			}
			inputs = inputs[n:]
		}
		x = x[n:]
	}
}

// witnessShare is the experts' share in the log-odds by which a label is trusted.
const witnessShare = 0.25

// witness returns the log-odds of spam by which a label is trusted: the head's, and a
// quarter of the mean of the experts that are witnesses.
func (l *layout) witness(in *features) float64 {
	if len(l.witnesses) == 0 {
		return in.head.LogOdds
	}
	sum := 0.0
	for _, i := range l.witnesses {
		sum += in.x[i]
	}
	return float64((1-witnessShare)*in.head.LogOdds) + float64(witnessShare*(sum/float64(len(l.witnesses))))
}
