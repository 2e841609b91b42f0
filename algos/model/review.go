package model

import "hamlet/algos/blr"

// A Worth is what the label of a body would teach, in nats. Both figures are of the head's
// belief alone. What the experts would learn is not in them.
type Worth struct {
	// Fall is how much lower the log loss of a recent body is expected to be because the
	// head knows the label ([blr.Region]).
	Fall float64
	// Information is the mutual information of the label and the head's weights
	// ([blr.Information]), the score of BALD.
	Information float64
}

// A Reviewer predicts by a model, and says of each body what its label would teach. It
// remembers what bodies were like, and no body. It does not change the model. It is not
// safe for concurrent use.
//
// It takes 4·D² bytes for each kind of body, with D the head's inputs.
type Reviewer struct {
	predictor *Predictor
	regions   [kindCount]*blr.Region // of the bodies predicted
}

// ReviewMemory is the half-life, in bodies, of what a Reviewer calls recent.
const ReviewMemory = 500

// NewReviewer returns a Reviewer of m that has seen no body. It always uses m's current
// state. It may run beside Predictors.
func (m *Model) NewReviewer() *Reviewer {
	r := &Reviewer{predictor: m.NewPredictor()}
	for k, s := range m.specs {
		r.regions[k] = blr.NewRegion(s.layout.dim(), ReviewMemory)
	}
	return r
}

// Review predicts b, says what its label would teach, and remembers b as recent. It
// returns a *RefusedError where Predict does. Before the model's first event of b's kind,
// Fall is 0. Beside Predict it costs 3·D² products and some 10 µs.
func (r *Reviewer) Review(b *Body) (Prediction, Worth, error) {
	m := r.predictor.m
	if err := m.Check(b); err != nil {
		return Prediction{}, Worth{}, err
	}
	s := m.submodel(b)
	in := r.predictor.vectorizer.read(b, s)
	prediction := predict(s, in)
	head := inflated(in.head.Mean, in.head.Variance)
	region := r.regions[kindOf(b)]
	region.Add(in.x, blr.Stake(head.Mean, head.Variance))
	worth := Worth{Information: blr.Information(head.Mean, head.Variance)}
	if s != nil {
		worth.Fall = float64(Inflation * region.Fall(s.head, in.x))
	}
	return prediction, worth, nil
}
