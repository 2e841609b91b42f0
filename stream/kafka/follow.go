package kafka

import (
	"cmp"
	"context"
	"errors"
)

// Follow reads one partition of a topic from the handler's position until ctx ends. It
// belongs to no consumer group: any number of learners may follow a partition, each from
// a position of its own. It commits nothing. Otherwise it is [Consumer.Run] of one
// assignment that lasts: the same handlers, the same checks of the log, the same errors.
// cfg.Group and cfg.CommitEach are not used.
func Follow(ctx context.Context, cfg ConsumerConfig, partition int, open func(ctx context.Context, partition int) (Handler, error)) error {
	cfg.Group = cmp.Or(cfg.Group, "none")
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	parent := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m := &member{cfg: &cfg, client: cfg.client(cfg.Topic), open: open, stop: stop}
	defer closeIdle(m.client)
	if err = m.awaitTopic(ctx); err == nil {
		m.readPartition(ctx, ctx, nil, partition)
		err = context.Cause(ctx)
	}
	if parent.Err() != nil && (errors.Is(err, parent.Err()) || errors.Is(err, context.Cause(parent))) {
		err = nil
	}
	return errors.Join(append([]error{err}, m.late...)...)
}
