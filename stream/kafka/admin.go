package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"hamlet/stream"
)

// Ping requests the cluster's metadata once. Its error names the address and the
// probable cause. Without a deadline in ctx it waits for five seconds.
func (cfg Config) Ping(ctx context.Context) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
	}
	client := cfg.client()
	defer closeIdle(client)
	if _, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{}}); err != nil {
		return explain(&cfg, err)
	}
	return nil
}

// topicName is org.apache.kafka.common.internals.Topic.validate's rule.
var topicName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)
})

// Ensure creates a topic of one partition unless it exists. 0 means the broker's default for
// replication and for retention; a negative retention means that records are never deleted. An
// existing topic is not changed, also if it has several partitions. It retries until ctx ends.
func (cfg Config) Ensure(ctx context.Context, name string, replication int, retention time.Duration) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	// kfake accepts any name. Checking here makes both brokers refuse the same names.
	if name == "." || name == ".." || !topicName().MatchString(name) {
		return fmt.Errorf("create topic %q: %w: a topic's name has 1 to 249 letters, digits, '.', '_' and '-'", name,
			ErrUnknownTopic)
	}
	topic := kafkago.TopicConfig{Topic: name, NumPartitions: 1, ReplicationFactor: cmp.Or(replication, -1)}
	if retention != 0 {
		ms := int64(-1)
		if retention > 0 {
			ms = retention.Milliseconds()
		}
		topic.ConfigEntries = []kafkago.ConfigEntry{{ConfigName: retentionMS, ConfigValue: strconv.FormatInt(ms, 10)}}
	}
	client := cfg.client(name)
	defer closeIdle(client)
	return retry(ctx, &cfg, client, "create topic "+name, func(ctx context.Context) error {
		_, err := partitionsOf(ctx, &cfg, client, name)
		if unknownTopic(err) {
			if err := createTopic(ctx, client, topic); err != nil {
				return err
			}
			_, err = partitionsOf(ctx, &cfg, client, name) // the transport has new metadata
		}
		if unknownTopic(err) {
			return errors.New("the topic is not yet in the cluster's metadata")
		}
		return err
	})
}

func createTopic(ctx context.Context, client *kafkago.Client, topic kafkago.TopicConfig) error {
	res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err == nil {
		err = res.Errors[topic.Topic]
	}
	if errors.Is(err, kafkago.TopicAlreadyExists) {
		return nil
	}
	return err
}

// Partitions returns how many partitions a topic has, 0 if it does not exist. It retries until
// ctx ends.
func (cfg Config) Partitions(ctx context.Context, topic string) (n int, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return 0, err
	}
	client := cfg.client(topic)
	defer closeIdle(client)
	err = retry(ctx, &cfg, client, "ask for the partitions of topic "+topic, func(ctx context.Context) error {
		ids, err := partitionsOf(ctx, &cfg, client, topic)
		if n = len(ids); unknownTopic(err) {
			return nil
		}
		return err
	})
	return n, err
}

// Open implements [stream.Logs]: see [NewLog].
func (cfg Config) Open(topic string) (stream.Topic, error) { return NewLog(cfg, topic) }

// Logger implements [stream.Logs].
func (cfg Config) Logger() *slog.Logger { return cfg.Log }

// Patience implements [stream.Logs].
func (cfg Config) Patience() time.Duration { return cfg.MaxOutage }

// listOffsets asks the leader of a partition once for the first offset in its log, and the log's
// end, the offset of the next record.
func listOffsets(ctx context.Context, client *kafkago.Client, topic string, partition int) (
	first, end int64, err error) {
	res, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{
		topic: {kafkago.FirstOffsetOf(partition), kafkago.LastOffsetOf(partition)},
	}})
	if err != nil {
		return 0, 0, err
	}
	all := res.Topics[topic]
	if len(all) != 1 {
		return 0, 0, fmt.Errorf("got the offsets of %d partitions, want one", len(all))
	}
	if all[0].Error != nil {
		return 0, 0, protocol.NewTopicPartitionError(topic, int32(partition), all[0].Error)
	}
	return all[0].FirstOffset, all[0].LastOffset, nil
}

// partitionsOf returns a topic's partitions, ascending, from the cached metadata, and
// remembers them in cfg.Seen. UnknownTopicOrPartition is the answer of a cluster that is
// complete, with live brokers and a controller among them.
func partitionsOf(ctx context.Context, cfg *Config, client *kafkago.Client, topic string) ([]int, error) {
	res, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(res.Topics, func(t kafkago.Topic) bool { return t.Name == topic })
	known := i >= 0 && !errors.Is(res.Topics[i].Error, kafkago.UnknownTopicOrPartition)
	switch {
	case !known && res.Controller.Host == "": // kafka-go looks it up among the live brokers
		return nil, fmt.Errorf("%w: the metadata names %d live brokers and no controller", errIncomplete, len(res.Brokers))
	case !known:
		return nil, kafkago.UnknownTopicOrPartition
	case res.Topics[i].Error != nil:
		return nil, res.Topics[i].Error
	}
	var ids []int
	for _, p := range res.Topics[i].Partitions {
		ids = append(ids, p.ID)
	}
	if len(ids) == 0 {
		return nil, kafkago.LeaderNotAvailable
	}
	slices.Sort(ids)
	cfg.Seen.add(topic, len(ids))
	return ids, nil
}

// The settings of a topic that decide what it loses.
const (
	retentionMS    = "retention.ms"
	retentionBytes = "retention.bytes"
)

// Retention returns how long a topic keeps a record, and whether it is also bounded by its
// size. It is negative for a topic that keeps its records for ever. It retries until ctx ends.
func (cfg Config) Retention(ctx context.Context, topic string) (d time.Duration, bounded bool, err error) {
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
		about := kafkago.DescribeConfigRequestResource{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{retentionMS, retentionBytes},
		}
		res, err := client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{
			Resources: []kafkago.DescribeConfigRequestResource{about},
		})
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
		return fmt.Errorf("the broker says %s=%q, %s=%q",
			retentionMS, said[retentionMS], retentionBytes, said[retentionBytes])
	}
	return nil
}
