package settings

import (
	"errors"
	"fmt"
	"testing"

	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/stream"
)

// Errors of services say what to do, and are still what they were.
func TestExplain(t *testing.T) {
	away := errors.New("away")
	denied := &learner.PredictionsError{Topic: "hamlet.predictions.m", Err: stream.ErrDenied}
	unmade := &learner.PredictionsError{Topic: "hamlet.predictions.m", Err: stream.ErrNoLog}
	for _, c := range []struct {
		err  error
		more string
	}{
		{follow.ErrGap, "; go on without them with --accept-gap, or start with an empty state"},
		{follow.ErrNoBeginning, "; if there was a model, restore its Redis from a backup; " +
			"to begin a new model with what is left, start once with --accept-lost-beginning"},
		{follow.ErrOutage, "; see to the brokers and start again, or wait longer with --kafka-outage"},
		{follow.ErrReplaced, ""},
		{ingest.ErrMixed, ". Name another directory with --data, or another model with --model"},
		{&learner.ConfigError{Differences: []string{"a"}}, ": start the learner with the model's, " +
			"or with --adopt-config to go on with this one"},
		{&learner.ConfigError{Differences: []string{"a"}, Err: away}, ": start the learner with the model's, " +
			"or a new model under another name; --adopt-config cannot change all of that: away"},
		{denied, "; this user needs Create and Write on hamlet.predictions.m, or start the learner with --no-predictions"},
		{unmade, "; start the learner again, which creates hamlet.predictions.m, or start it with --no-predictions"},
		{&learner.PredictionsError{Err: away}, ""},
	} {
		err := fmt.Errorf("model m: %w", c.err)
		if got := Explain(err); got.Error() != err.Error()+c.more || !errors.Is(got, c.err) {
			t.Errorf("%v: %v, want %s behind it", err, got, c.more)
		}
	}
	if err := Explain(nil); err != nil {
		t.Error(err)
	}
}
