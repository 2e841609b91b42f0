// Package advice knows the flags and commands that help where an adapter says what is wrong. Adapters
// know no command line.
package advice

import (
	"errors"
	"fmt"

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
	switch {
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
