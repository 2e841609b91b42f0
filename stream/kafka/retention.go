package kafka

import (
	"context"
	"fmt"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// The settings of a topic that decide what it loses.
const (
	retentionMS    = "retention.ms"
	retentionBytes = "retention.bytes"
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

// The settings of a topic.
type settings struct {
	retention int64 // in milliseconds; negative: for ever
	bytes     int64 // of a partition; negative: unbounded
}

// settingsOf asks for the settings of a topic that exists.
func settingsOf(ctx context.Context, cfg *Config, topic string) (s settings, err error) {
	client := cfg.client(topic)
	defer closeIdle(client)
	err = retry(ctx, cfg, client, "ask for the settings of topic "+topic, func(ctx context.Context) error {
		res, err := client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{retentionMS, retentionBytes},
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
	s.retention, err = strconv.ParseInt(said[retentionMS], 10, 64)
	s.bytes, bytesErr = strconv.ParseInt(said[retentionBytes], 10, 64)
	if err != nil || bytesErr != nil {
		return fmt.Errorf("the broker says %s=%q, %s=%q", retentionMS, said[retentionMS], retentionBytes, said[retentionBytes])
	}
	return nil
}
