package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream/order"
)

// The settings of a topic that decide what it loses.
const (
	cleanupPolicy  = "cleanup.policy"
	retentionMS    = "retention.ms"
	retentionBytes = "retention.bytes"
)

// EnsureOrder creates the topic of a model's order log unless it exists: one partition,
// which loses nothing earlier than the events topic does. The events topic must exist. 0
// for replication means the broker's default. It retries until ctx ends.
//
// An existing topic is not changed, but checked. It wraps ErrSettings if
//
//   - either topic is compacted: a model would learn other records than another one did;
//   - the order log has more than one partition: then it is no order;
//   - the order log is kept for a shorter time than the events, or bounded by its size:
//     the events that are left could not be replayed.
func EnsureOrder(ctx context.Context, cfg Config, model, events string, replication int) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	name := order.Topic(model)
	ofEvents, err := settingsOf(ctx, &cfg, events)
	if err != nil {
		return err
	}
	if err := ofEvents.checkPolicy(); err != nil {
		return err
	}
	client := cfg.client(name)
	defer closeIdle(client)
	err = ensureTopic(ctx, &cfg, client, kafkago.TopicConfig{
		Topic: name, NumPartitions: 1, ReplicationFactor: cmp.Or(replication, -1),
		ConfigEntries: []kafkago.ConfigEntry{
			{ConfigName: cleanupPolicy, ConfigValue: "delete"},
			{ConfigName: retentionMS, ConfigValue: strconv.FormatInt(ofEvents.retention, 10)},
			{ConfigName: retentionBytes, ConfigValue: "-1"},
		},
	})
	if err != nil {
		return err
	}
	if n := cfg.Seen.count(name); n != 1 {
		return fmt.Errorf("topic %s: %w: it has %d partitions, an order log has one: delete the topic, or name another model", name, ErrSettings, n)
	}
	ofOrder, err := settingsOf(ctx, &cfg, name)
	if err != nil {
		return err
	}
	return errors.Join(ofOrder.checkPolicy(), ofOrder.checkRetention(&ofEvents))
}

// The settings of a topic.
type settings struct {
	topic     string
	policy    string
	retention int64 // in milliseconds; negative: for ever
	bytes     int64 // of a partition; negative: unbounded
}

func (s *settings) checkPolicy() error {
	if s.policy != "delete" {
		return fmt.Errorf("topic %s: %w: its %s is %q: set it to delete, because compaction takes records out of the middle", s.topic, ErrSettings, cleanupPolicy, s.policy)
	}
	return nil
}

// checkRetention returns an error if s may lose what the events topic still holds.
func (s *settings) checkRetention(events *settings) error {
	var errs []error
	if s.retention >= 0 && (events.retention < 0 || s.retention < events.retention) {
		errs = append(errs, fmt.Errorf("topic %s: %w: its %s is %d: set it to %d or more, as of %s", s.topic, ErrSettings, retentionMS, s.retention, events.retention, events.topic))
	}
	if s.bytes >= 0 {
		errs = append(errs, fmt.Errorf("topic %s: %w: its %s is %d: set it to -1, because its age alone may decide what is deleted", s.topic, ErrSettings, retentionBytes, s.bytes))
	}
	return errors.Join(errs...)
}

// settingsOf asks for the settings of a topic that exists.
func settingsOf(ctx context.Context, cfg *Config, topic string) (settings, error) {
	client := cfg.client(topic)
	defer closeIdle(client)
	s := settings{topic: topic}
	err := retry(ctx, cfg, client, "ask for the settings of topic "+topic, func(ctx context.Context) error {
		res, err := client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic,
			ConfigNames: []string{cleanupPolicy, retentionMS, retentionBytes},
		}}})
		if err != nil {
			return err
		}
		if len(res.Resources) != 1 {
			return fmt.Errorf("got the settings of %d topics, want one", len(res.Resources))
		}
		if err := res.Resources[0].Error; err != nil {
			return err
		}
		return s.read(res.Resources[0].ConfigEntries)
	})
	return s, err
}

// read takes over what a broker said. All of it must be there.
func (s *settings) read(entries []kafkago.DescribeConfigResponseConfigEntry) error {
	said := map[string]string{}
	for _, e := range entries {
		said[e.ConfigName] = e.ConfigValue
	}
	var err, bytesErr error
	s.policy = said[cleanupPolicy]
	s.retention, err = strconv.ParseInt(said[retentionMS], 10, 64)
	s.bytes, bytesErr = strconv.ParseInt(said[retentionBytes], 10, 64)
	if s.policy == "" || err != nil || bytesErr != nil {
		return fmt.Errorf("the broker says %s=%q, %s=%q, %s=%q", cleanupPolicy, s.policy,
			retentionMS, said[retentionMS], retentionBytes, said[retentionBytes])
	}
	return nil
}
