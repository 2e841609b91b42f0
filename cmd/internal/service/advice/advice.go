// Package advice knows the flags and commands that help where an adapter or a service says what is wrong.
// These know no command line.
package advice

import (
	"errors"
	"fmt"

	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// Add appends to an error what its reader may do about it by a flag or a command. It returns others as
// they are, and nil for nil. An error gets its advice once.
func Add(err error) error {
	if help := helps(err); help != "" && !errors.As(err, new(*advised)) {
		return &advised{err, help}
	}
	return err
}

type advised struct {
	err  error
	help string
}

func (a *advised) Error() string { return a.err.Error() + a.help }
func (a *advised) Unwrap() error { return a.err }

// streams are the flags of what JetStream keeps.
var streams = map[string]map[nats.Setting]string{
	nats.AlertStream: {nats.SettingReplicas: " (--alert-replicas 1)"},
	nats.JournalStream: {
		nats.SettingStream:   ", or go without (--no-journal)",
		nats.SettingReplicas: " (--journal-replicas 1)",
		nats.SettingBytes:    ", or lower --journal-size",
	},
	nats.MailStream: {
		nats.SettingStream: ", or leave out --keep-mail",
		nats.SettingBytes:  ", or lower --keep-mail-size",
		nats.SettingUser:   " (--keep-mail-nats)",
	},
	nats.WaitingStream: {
		nats.SettingBytes: ", or lower --self-label-size",
		nats.SettingUser:  " (--self-label-nats)",
	},
}

func helps(err error) string {
	var refused *nats.RefusedError
	var partitions *state.PartitionsError
	var made *learner.ConfigError
	var predicting *learner.PredictionsError
	switch {
	case errors.As(err, &made) && made.Err != nil:
		return ": start the learner with the model's, or a new model under another name; " +
			"--adopt-config cannot change all of that: " + made.Err.Error()
	case errors.As(err, &made):
		return ": start the learner with the model's, or with --adopt-config to go on with this one"
	case errors.As(err, &predicting) && errors.Is(err, stream.ErrDenied):
		return "; " + NotPredicting(predicting.Topic)
	case errors.As(err, &predicting) && errors.Is(err, stream.ErrNoLog):
		return fmt.Sprintf("; start the learner again, which creates %s, or start it with --no-predictions",
			predicting.Topic)
	case errors.Is(err, follow.ErrGap):
		return "; go on without them with --accept-gap, or start with an empty state"
	case errors.Is(err, follow.ErrNoBeginning):
		return "; if there was a model, restore its Redis from a backup; " +
			"to begin a new model with what is left, start once with --accept-lost-beginning"
	case errors.Is(err, follow.ErrOutage):
		return "; see to the brokers and start again, or wait longer with --kafka-outage"
	case errors.Is(err, ingest.ErrMixed):
		return ". Name another directory with --data, or another model with --model"
	case errors.As(err, &refused):
		return streams[refused.Stream][refused.Setting]
	case errors.Is(err, kafka.ErrOutage):
		return ", or wait longer with --kafka-outage"
	case errors.Is(err, redis.ErrIsCluster):
		return ": add --redis-cluster"
	case errors.Is(err, redis.ErrNoCluster):
		return ": leave out --redis-cluster"
	case errors.Is(err, redis.ErrNoSentinel):
		return ": give the addresses of Sentinels, or leave out --redis-sentinel"
	case errors.Is(err, redis.ErrEvicts):
		return ", or accept that with --redis-evicts"
	case errors.Is(err, stream.ErrDamaged):
		return " with hamlet log skip"
	case errors.As(err, &partitions):
		return fmt.Sprintf(": make one log of theirs with \"hamlet log merge --from %s --to NAME\", "+
			"and have it learnt under that name", partitions.Model)
	case errors.Is(err, state.ErrOrdered):
		return ". With 0.1.0, stop ingest, let the learner save, and write this model's hamlet order export FILE; " +
			"then hamlet log import FILE for a model of another name, and have that learnt"
	}
	return ""
}

// NotPredicting says what a user lacks who may not make a topic of predictions, or write to it.
func NotPredicting(topic string) string {
	return fmt.Sprintf("this user needs Create and Write on %s, or start the learner with --no-predictions", topic)
}
