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

	submodels []*submodel   // of the current body's kind; only find writes it
	experts   []text.Expert // of one entry; only collect writes it
	answers   []answer
	together  bool // the answers used pooled experts; only ask writes it
}

// An answer is one model's prediction, with its weight.
type answer struct {
	Prediction
	contributions []Contribution // withInputs
	shares        apportioned    // withWords
	words         []Word         // withWords, of a model that was asked separately
	weight        float64
}

// A detail is how much is asked for.
type detail int

const (
	bare detail = iota
	withInputs
	withWords
)

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
	if err := p.ask(b, bare); err != nil {
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
	if err := p.ask(b, withInputs); err != nil {
		return Prediction{}, nil, err
	}
	return average(p.answers), averageContributions(p.answers, inputsOf), nil
}

// ask sets p.answers to the models' answers, at least one.
func (p *Pool) ask(b *Body, want detail) error {
	p.answers = p.answers[:0]
	p.together = p.alike && p.find(b)
	if !p.together {
		return p.askEach(b, want)
	}
	first := p.predictors[0]
	if err := first.m.Check(b); err != nil {
		return err
	}
	in := p.read(b)
	for _, s := range p.submodels {
		in.spec.layout.fill(in, s)
		a := answer{weight: float64(s.events)}
		switch want {
		case bare:
			a.Prediction = predict(s, in)
		case withInputs:
			a.Prediction, a.contributions = first.explain(s, in)
		case withWords:
			a.Prediction, a.contributions, a.shares = first.apportion(s, in)
		default:
			panic("model: no such detail")
		}
		p.answers = append(p.answers, a)
	}
	return nil
}

// askEach asks each model separately, with equal weights. If some models have learnt
// bodies of b's kind, it asks only those. It fails if any model refuses b.
func (p *Pool) askEach(b *Body, want detail) error {
	known := p.find(b)
	for _, one := range p.predictors {
		if known && one.m.submodel(b) == nil {
			if err := one.m.Check(b); err != nil {
				return err
			}
			continue
		}
		a, err := answer{weight: 1}, error(nil)
		switch want {
		case bare:
			a.Prediction, err = one.Predict(b)
		case withInputs:
			a.Prediction, a.contributions, err = one.Explain(b)
		case withWords:
			var all Attribution
			all, err = one.Attribute(b)
			a.Prediction, a.contributions, a.words, a.shares.rest = all.Prediction, all.Inputs, all.Words, all.Rest
		default:
			panic("model: no such detail")
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
		p.collect(k)
		in.scores[k] = text.Score{}
		if len(p.experts) > 0 {
			in.scores[k] = p.experts[0].Pool(p.experts, in.views[k])
		}
	}
	return in
}

// collect sets p.experts to the experts k of all sub-models.
func (p *Pool) collect(k int) {
	p.experts = p.experts[:0]
	for _, s := range p.submodels {
		if s.experts != nil {
			p.experts = append(p.experts, s.experts[k])
		}
	}
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

func inputsOf(a answer) []Contribution { return a.contributions }
func restOf(a answer) []Contribution   { return a.shares.rest }

// averageContributions averages contributions of the answers by name.
func averageContributions(answers []answer, of func(answer) []Contribution) []Contribution {
	total := totalWeight(answers)
	var all []Contribution // SD holds the mean of variances until the end
	index := map[string]int{}
	for _, a := range answers {
		part := a.weight / total
		for _, c := range of(a) {
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
