package kafka

import (
	"context"
	"fmt"
	"strconv"

	kafkago "github.com/segmentio/kafka-go"
)

// The settings of a topic that decide what it loses.
const (
	retentionMS    = "retention.ms"
	retentionBytes = "retention.bytes"
)

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
