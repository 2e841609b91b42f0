package kafka

import (
	"context"
	"errors"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Retention returns how long a topic keeps a record, and whether it is also bounded by its
// size. It is negative for a topic that keeps its records for ever. It retries until ctx ends.
func Retention(ctx context.Context, cfg Config, topic string) (d time.Duration, bounded bool, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return 0, false, err
	}
	s, err := settingsOf(ctx, &cfg, topic)
	if s.retention < 0 {
		return -1, s.bytes >= 0, err
	}
	// A duration holds 292 years. A longer time is as good as for ever.
	if s.retention > int64(time.Duration(1<<63-1)/time.Millisecond) {
		return -1, s.bytes >= 0, err
	}
	return time.Duration(s.retention) * time.Millisecond, s.bytes >= 0, err
}

// Members returns how many clients are in a consumer group. One that was killed stays in it
// for its session's timeout. A group that nobody has joined has none. It retries until ctx
// ends.
func Members(ctx context.Context, cfg Config, group string) (n int, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return 0, err
	}
	client := cfg.client()
	defer closeIdle(client)
	err = retry(ctx, &cfg, client, "ask for the members of group "+group, func(ctx context.Context) error {
		res, err := client.DescribeGroups(ctx, &kafkago.DescribeGroupsRequest{GroupIDs: []string{group}})
		if err != nil {
			return err
		}
		n = 0
		for _, g := range res.Groups {
			if g.GroupID != group {
				continue
			}
			if g.Error != nil && !errors.Is(g.Error, kafkago.GroupIdNotFound) {
				return g.Error
			}
			n = len(g.Members)
		}
		return nil
	})
	return n, err
}
