package settings

import (
	"errors"
	"fmt"

	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/stream"
)

// Explain adds to an error of a service what an operator can do about it, with the flags for it. It returns every
// other error as it is.
func Explain(err error) error {
	var made *learner.ConfigError
	var predicting *learner.PredictionsError
	switch {
	case errors.As(err, &made) && made.Err != nil:
		return fmt.Errorf("%w: start the learner with the model's, or a new model under another name; "+
			"--adopt-config cannot change all of that: %w", err, made.Err)
	case errors.As(err, &made):
		return fmt.Errorf("%w: start the learner with the model's, or with --adopt-config to go on with this one", err)
	case errors.As(err, &predicting) && errors.Is(err, stream.ErrDenied):
		return fmt.Errorf("%w; %s", err, notPredicting(predicting.Topic))
	case errors.As(err, &predicting) && errors.Is(err, stream.ErrNoLog):
		return fmt.Errorf("%w; start the learner again, which creates %s, or start it with --no-predictions",
			err, predicting.Topic)
	case errors.Is(err, follow.ErrGap):
		return fmt.Errorf("%w; go on without them with --accept-gap, or start with an empty state", err)
	case errors.Is(err, follow.ErrNoBeginning):
		return fmt.Errorf("%w; if there was a model, restore its Redis from a backup; "+
			"to begin a new model with what is left, start once with --accept-lost-beginning", err)
	case errors.Is(err, follow.ErrOutage):
		return fmt.Errorf("%w; see to the brokers and start again, or wait longer with --kafka-outage", err)
	case errors.Is(err, ingest.ErrMixed):
		return fmt.Errorf("%w. Name another directory with --data, or another model with --model", err)
	}
	return err
}

// notPredicting says what a user lacks who may not make a topic of predictions, or write to it.
func notPredicting(topic string) string {
	return fmt.Sprintf("this user needs Create and Write on %s, or start the learner with --no-predictions", topic)
}
