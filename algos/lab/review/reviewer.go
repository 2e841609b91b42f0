package review

import (
	"hamlet/algos/blr"
	"hamlet/algos/model"
)

// A Worth is what the label of a body would teach, in nats. Both figures are of the head's
// belief alone. What the experts would learn is not in them.
type Worth struct {
	// Fall is how much lower the log loss of a recent body is expected to be because the
	// head knows the label ([Region]).
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
	predictor *model.Predictor
	mail      *Region // of the bodies predicted; nil before the first
	vectors   *Region
}

// Memory is the half-life, in bodies, of what a Reviewer calls recent.
const Memory = 500

// NewReviewer returns a Reviewer of m that has seen no body. It always uses m's current
// state. It may run beside Predictors.
func NewReviewer(m *model.Model) *Reviewer { return &Reviewer{predictor: m.NewPredictor()} }

// Review predicts b, says what its label would teach, and remembers b as recent. It
// returns a *model.RefusedError where Predict does. Before the model's first event of b's
// kind, Fall is 0. Beside Predict it costs 3·D² products and some 10 µs.
func (r *Reviewer) Review(b *model.Body) (model.Prediction, Worth, error) {
	prediction, x, head, err := r.predictor.Head(b)
	if err != nil {
		return model.Prediction{}, Worth{}, err
	}
	own := prediction
	if head != nil {
		mean, variance := head.Moments(x)
		own = model.Expect(mean, float64(model.Inflation*variance))
	}
	region := &r.mail
	if b.Vector != nil {
		region = &r.vectors
	}
	if *region == nil {
		*region = NewRegion(len(x), Memory)
	}
	(*region).Add(x, Stake(own.Mean, own.Variance))
	worth := Worth{Information: blr.Information(own.Mean, own.Variance)}
	if head != nil {
		worth.Fall = float64(model.Inflation * (*region).Fall(head, x))
	}
	return prediction, worth, nil
}
