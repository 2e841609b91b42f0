package advice

import (
	"errors"
	"fmt"
	"testing"

	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

func TestAdd(t *testing.T) {
	refused := func(stream string, help nats.Setting) error {
		return &nats.RefusedError{Stream: stream, Setting: help, Err: errors.New("refused")}
	}
	for _, c := range []struct {
		err  error
		want string // "": as it is
	}{
		{errors.New("any"), ""},
		{state.ErrPartitions, ""}, // who says only this has words of its own
		{refused(nats.JournalStream, nats.SettingStream), "refused, or go without (--no-journal)"},
		{refused(nats.JournalStream, nats.SettingUser), ""},
		{refused(nats.AuditStream, nats.SettingStream), ""},
		{fmt.Errorf("wrapped %w", refused(nats.WaitingStream, nats.SettingBytes)), "wrapped refused, or lower --self-label-size"},
		{kafka.ErrOutage, "kafka outage, or wait longer with --kafka-outage"},
		{redis.ErrIsCluster, "it is a node of a Redis Cluster: add --redis-cluster"},
		{fmt.Errorf("leave it out%w", stream.ErrDamaged), "leave it outthe log is damaged with hamlet log skip"},
		{&state.PartitionsError{Model: "m", Partitions: []int{0, 1}},
			(&state.PartitionsError{Model: "m", Partitions: []int{0, 1}}).Error() +
				`: make one log of theirs with "hamlet log merge --from m --to NAME", and have it learnt under that name`},
	} {
		got := Add(Add(c.err))
		if want := max(c.want, c.err.Error()); got.Error() != want || !errors.Is(got, c.err) {
			t.Errorf("%v gets\n%v, want\n%v", c.err, got, want)
		}
	}
	if err := Add(nil); err != nil {
		t.Errorf("nil gets %v", err)
	}
}

// Errors of services say what to do, and are still what they were.
func TestErrorsOfServices(t *testing.T) {
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
		if got := Add(err); got.Error() != err.Error()+c.more || !errors.Is(got, c.err) {
			t.Errorf("%v: %v, want %s behind it", err, got, c.more)
		}
	}
	if err := Add(nil); err != nil {
		t.Error(err)
	}
}
