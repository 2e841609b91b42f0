package model

import (
	"cmp"
	"math"
	"slices"

	"hamlet/algos/text"
)

// A Pool combines the answers of several partitions' models. It is not safe for concurrent
// use, nor while events are applied to the models.
//
// Each expert's answer is pooled over all models ([text.Expert.Pool]), so that a word that
// one partition has seen is known. Each model's head and stack use the pooled answers;
// each model standardises the dense inputs itself. Means and variances of the log-odds are
// averaged, weighted by the events that the sub-model has learnt. The answer is the
// predictive probability of that belief.
//
// Models that read bodies differently (table bits, experts, frozen expert, skipped headers, dense names)
// answer separately, with equal weights. A model that has not learnt this kind of body has
// weight 0, unless no model has. A pool of one model answers as that model. MEASURED.md
// compares other ways to pool.
type Pool struct {
	models     []*Model
	predictors []*Predictor
	alike      bool // all models read bodies in the same way

	submodels []*submodel // of the current body's kind; only find writes it
	experts   []text.Expert
	answers   []answer
}

// An answer is one model's prediction, with its weight.
type answer struct {
	Prediction
	contributions []Contribution
	weight        float64
}

// NewPool returns a Pool of models. It panics without a model.
func NewPool(models ...*Model) *Pool {
	if len(models) == 0 {
		panic("model: a pool of no models")
	}
	p := &Pool{models: models, alike: true}
	first := models[0].cfg
	for _, m := range models {
		p.predictors = append(p.predictors, m.NewPredictor())
		p.alike = p.alike && m.cfg.SpamShare == first.SpamShare && m.cfg.TableBits == first.TableBits && slices.Equal(m.cfg.Dense, first.Dense) &&
			slices.Equal(m.cfg.TextExperts, first.TextExperts) && slices.Equal(m.cfg.PersonalExperts, first.PersonalExperts) &&
			slices.Equal(m.cfg.SkipHeaders, first.SkipHeaders) && m.cfg.Frozen == first.Frozen
	}
	return p
}

// Predict returns the models' pooled prediction for b, or a *RefusedError.
func (p *Pool) Predict(b *Body) (Prediction, error) {
	if len(p.models) == 1 {
		return p.predictors[0].Predict(b)
	}
	if err := p.ask(b, false); err != nil {
		return Prediction{}, err
	}
	return average(p.answers), nil
}

// Explain is Predict with the inputs' contributions, largest absolute value first. They
// are weighted means over the models; an input that a model lacks counts 0. SD is the root
// of the mean variance. The contributions sum to Mean, up to rounding.
func (p *Pool) Explain(b *Body) (Prediction, []Contribution, error) {
	if len(p.models) == 1 {
		return p.predictors[0].Explain(b)
	}
	if err := p.ask(b, true); err != nil {
		return Prediction{}, nil, err
	}
	return average(p.answers), averageContributions(p.answers), nil
}

// ask sets p.answers to the models' answers, at least one.
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

// askEach asks each model separately, with equal weights. If some models have learnt
// bodies of b's kind, it asks only those. It fails if any model refuses b.
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

// find collects the sub-models of b's kind. It reports whether it found any.
func (p *Pool) find(b *Body) bool {
	p.submodels = p.submodels[:0]
	for _, m := range p.models {
		if s := m.submodel(b); s != nil {
			p.submodels = append(p.submodels, s)
		}
	}
	return len(p.submodels) > 0
}

// read reads b and pools the experts of all sub-models. It does not fill the head's
// inputs: they depend on the sub-model.
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

// average returns the weighted mean of at least one answer.
func average(answers []answer) Prediction {
	total := totalWeight(answers)
	var mean, variance float64
	for _, a := range answers {
		part := a.weight / total
		mean += float64(part * a.Mean)
		variance += float64(part * a.Variance)
	}
	return Expect(mean, variance)
}

// averageContributions averages the contributions by name.
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
