package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/text"
)

// A Pool asks the models of several partitions as one. It serves one goroutine,
// while nobody applies events to the models.
//
// The experts of all models answer together ([text.Expert.Pool]): a word that one
// partition knows is known. Their answers go to the head of each model, and to its
// stack where it has one; dense inputs enter as that model standardises them. The
// answers before moderation, and their variances, are averaged, each weighted by the
// events that its sub-model has learnt, and the pooled answer is moderated from the two
// means.
//
// Models that read bodies in different ways (table bits, experts, skipped headers,
// dense names) answer each for itself, with equal weights. A model that has learnt no
// body of the kind asked about has weight 0, unless that holds for all of them. A pool
// of one model answers as it does alone. MEASURED.md compares it with other ways.
type Pool struct {
	models     []*Model
	predictors []*Predictor
	alike      bool // all read bodies in one way

	submodels []*submodel // those that know the body at hand; only find writes it
	experts   []text.Expert
	answers   []answer
}

// An answer is one model's, and how much it counts.
type answer struct {
	Prediction
	contributions []Contribution
	weight        float64
}

// NewPool returns a Pool of models. It panics if there is none.
func NewPool(models ...*Model) *Pool {
	if len(models) == 0 {
		panic("model: a pool of no models")
	}
	p := &Pool{models: models, alike: true}
	first := models[0].cfg
	for _, m := range models {
		p.predictors = append(p.predictors, m.NewPredictor())
		p.alike = p.alike && m.cfg.SpamShare == first.SpamShare && m.cfg.TableBits == first.TableBits && slices.Equal(m.cfg.Dense, first.Dense) &&
			slices.Equal(m.cfg.TextExperts, first.TextExperts) && slices.Equal(m.cfg.SkipHeaders, first.SkipHeaders)
	}
	return p
}

// Predict returns what the models together think of b, or a *RefusedError.
func (p *Pool) Predict(b *Body) (Prediction, error) {
	if len(p.models) == 1 {
		return p.predictors[0].Predict(b)
	}
	if err := p.ask(b, false); err != nil {
		return Prediction{}, err
	}
	return average(p.answers), nil
}

// Explain is Predict with the contributions of the inputs, largest absolute value
// first: their means, and the roots of their mean variances, over the models, 0
// where one has no such input, so that their sum is Mean, to rounding.
func (p *Pool) Explain(b *Body) (Prediction, []Contribution, error) {
	if len(p.models) == 1 {
		return p.predictors[0].Explain(b)
	}
	if err := p.ask(b, true); err != nil {
		return Prediction{}, nil, err
	}
	return average(p.answers), averageContributions(p.answers), nil
}

// ask leaves the models' answers in p.answers: at least one.
func (p *Pool) ask(b *Body, explain bool) error {
	p.answers = p.answers[:0]
	if !p.alike || !p.find(b) {
		return p.askEach(b, explain)
	}
	first := p.predictors[0]
	if err := first.m.Check(b); err != nil {
		return err
	}
	in := p.read(b)
	for _, s := range p.submodels {
		in.spec.layout.fill(in, s)
		a := answer{weight: float64(s.events)}
		if explain {
			a.Prediction, a.contributions = first.explain(s, in)
		} else {
			a.Prediction = predict(s, in)
		}
		p.answers = append(p.answers, a)
	}
	return nil
}

// askEach asks each model as it is, with equal weights, except those that know no
// body like b where others do. What one of them refuses, all do.
func (p *Pool) askEach(b *Body, explain bool) error {
	known := p.find(b)
	for _, one := range p.predictors {
		if known && one.m.submodel(b) == nil {
			if err := one.m.Check(b); err != nil {
				return err
			}
			continue
		}
		a, err := answer{weight: 1}, error(nil)
		if explain {
			a.Prediction, a.contributions, err = one.Explain(b)
		} else {
			a.Prediction, err = one.Predict(b)
		}
		if err != nil {
			return err
		}
		p.answers = append(p.answers, a)
	}
	return nil
}

// find collects the sub-models that know bodies like b, and reports whether there is
// one.
func (p *Pool) find(b *Body) bool {
	p.submodels = p.submodels[:0]
	for _, m := range p.models {
		if s := m.submodel(b); s != nil {
			p.submodels = append(p.submodels, s)
		}
	}
	return len(p.submodels) > 0
}

// read reads b, and lets the experts of all sub-models answer together. The inputs
// that depend on a sub-model are left to layout.fill.
func (p *Pool) read(b *Body) *features {
	in := p.predictors[0].reader.features(b, nil)
	for k := range in.scores {
		p.experts = p.experts[:0]
		for _, s := range p.submodels {
			if s.experts != nil {
				p.experts = append(p.experts, s.experts[k])
			}
		}
		in.scores[k] = text.Score{}
		if len(p.experts) > 0 {
			in.scores[k] = p.experts[0].Pool(p.experts, in.views[k])
		}
	}
	return in
}

// average returns the weighted mean of the answers, at least one.
func average(answers []answer) Prediction {
	total := totalWeight(answers)
	var mean, variance float64
	for _, a := range answers {
		part := a.weight / total
		mean += float64(part * a.Mean)
		variance += float64(part * a.Variance)
	}
	return moderated(mean, variance)
}

// averageContributions averages the contributions of one name.
func averageContributions(answers []answer) []Contribution {
	total := totalWeight(answers)
	var all []Contribution // SD holds the mean of variances until the end
	index := map[string]int{}
	for _, a := range answers {
		part := a.weight / total
		for _, c := range a.contributions {
			i, known := index[c.Name]
			if !known {
				i = len(all)
				index[c.Name] = i
				all = append(all, Contribution{Name: c.Name})
			}
			all[i].Contribution += float64(part * c.Contribution)
			all[i].SD += float64(part * float64(c.SD*c.SD))
		}
	}
	for i := range all {
		all[i].SD = math.Sqrt(all[i].SD)
	}
	slices.SortFunc(all, func(a, b Contribution) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Contribution), math.Abs(a.Contribution)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func totalWeight(answers []answer) (total float64) {
	for _, a := range answers {
		total += a.weight
	}
	return total
}
