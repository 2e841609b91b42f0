package model

import (
	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// A group is a run of neighbouring inputs of a head, which are alike. The groups of a
// head are listed once, in textInputs and vectorInputs. Names, prior, sizes and places
// of the inputs are computed from the list, for the head, its second head, ensembles,
// alarms, explanations and pooled answers. To add inputs, add a group.
type group struct {
	names          []string // what an explanation calls them: one name an input
	mean, variance float64  // of the prior of each one's weight

	// fill writes the inputs of the body at hand into dst. s is nil before the
	// sub-model's first event; all inputs but the body's own are 0 then.
	fill func(dst []float64, in *features, s *submodel)

	// raw returns what ensembles and the label-noise alarm see in place of the
	// inputs; nil: the inputs themselves.
	raw func(in *features) []float64

	constant bool // the bias: ensembles do not see it
	expert   bool // an expert's answer: pooled answers replace it
}

// The priors of the heads. Pulled towards the mean of the k opinions, a head beats that
// mean from the first message; left free it loses to it. (Measured: SpamAssassin in time
// order, three shuffles, sms.)
const (
	opinionMean     = 0.8 // of an opinion's weight, times k
	opinionVariance = 0.4 // times k
	textBias        = 0.1 // variances
	textFact        = 0.4
	vectorVariance  = 0.3 // of the bias, the dense inputs and the count of names
)

// textInputs lists x = [1, experts, facts, rate of spam].
func textInputs(cfg Config) []group {
	groups := []group{bias(textBias)}
	groups = append(groups, expertInputs(textExperts(cfg), textFact)...)
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
	return groups
}

// vectorInputs lists x = [1, dense, experts, ln(1+count of hashed names)].
func vectorInputs(cfg Config) []group {
	groups := []group{bias(vectorVariance), {
		names: cfg.Dense, variance: vectorVariance,
		// Trees only ask for the order of a column's values, which running
		// standardisation would mix up.
		raw: func(in *features) []float64 { return in.dense },
		fill: func(dst []float64, in *features, s *submodel) {
			clear(dst)
			if s != nil {
				s.columns.Standardise(dst, in.dense)
			}
		},
	}}
	groups = append(groups, expertInputs(text.Vectors, vectorVariance)...)
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

// expertInputs lists the inputs of the experts, each a group. Those that are no
// opinions have the prior variance other.
func expertInputs(experts []*text.Entry, other float64) (groups []group) {
	opinions := 0.0
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
				names: []string{input.Name}, variance: other, expert: true,
				fill: func(dst []float64, in *features, _ *submodel) { dst[0] = in.scores[k].Inputs[j] },
			}
			if input.Opinion {
				g.mean, g.variance = opinionMean/opinions, opinionVariance/opinions
			}
			groups = append(groups, g)
		}
	}
	return groups
}

// A prior is N(mean, diag(1/precision)) over a head's inputs.
type prior struct{ mean, precision []float64 }

// A layout is a head's inputs: the groups, and what follows from them.
type layout struct {
	groups []group
	names  []string
	prior  prior
	raw    int // how many numbers ensembles and the label-noise alarm see
}

func newLayout(groups []group) *layout {
	l := &layout{groups: groups}
	for _, g := range groups {
		for _, name := range g.names {
			l.names = append(l.names, name)
			l.prior.mean = append(l.prior.mean, g.mean)
			l.prior.precision = append(l.prior.precision, 1/g.variance)
			if !g.constant {
				l.raw++
			}
		}
	}
	return l
}

func (l *layout) dim() int { return len(l.names) }

// fill writes the head's inputs into in.x and what ensembles see of them into
// in.inputs, rounded to float32 as their windows keep it.
func (l *layout) fill(in *features, s *submodel) {
	x, inputs := in.x, in.inputs
	for i := range l.groups {
		g := &l.groups[i]
		n := len(g.names)
		g.fill(x[:n], in, s)
		if !g.constant {
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

// fillExperts replaces the experts' inputs in x by what in has.
func (l *layout) fillExperts(x []float64, in *features) {
	for i := range l.groups {
		g := &l.groups[i]
		if g.expert {
			g.fill(x[:len(g.names)], in, nil)
		}
		x = x[len(g.names):]
	}
}
