package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Ping asks the cluster for its metadata, once. Its error names the address and
// says what is probably wrong: no broker, a wrong password, TLS on one side only.
// ctx should have a deadline; five seconds are assumed otherwise.
func Ping(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
	}
	client, transport := cfg.client()
	defer transport.CloseIdleConnections()
	if _, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{}}); err != nil {
		return explain(&cfg, err)
	}
	return nil
}

// topicName is org.apache.kafka.common.internals.Topic.validate's rule.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// EnsureTopic creates a topic if there is none of that name: with partitions,
// with replication copies (0: the broker's default), and with a retention after
// which records are deleted (0: the broker's default; below 0: never). A topic
// that exists is left as it is, and a difference in partitions is logged. It
// retries until ctx ends, and returns when the topic can be used.
func EnsureTopic(ctx context.Context, cfg Config, name string, partitions, replication int, retention time.Duration) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if partitions < 1 {
		return fmt.Errorf("topic %s: %d partitions; at least one is needed", name, partitions)
	}
	// kfake takes any name; Kafka's rule is checked here, so that both refuse the same.
	if name == "." || name == ".." || !topicName.MatchString(name) {
		return fmt.Errorf("create topic %q: %w: a topic's name has 1 to 249 letters, digits, '.', '_' and '-'", name, ErrUnknownTopic)
	}
	client, transport := cfg.client(name)
	defer transport.CloseIdleConnections()

	topic := kafkago.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: replication}
	if replication == 0 {
		topic.ReplicationFactor = -1
	}
	if retention != 0 {
		ms := int64(-1)
		if retention > 0 {
			ms = retention.Milliseconds()
		}
		topic.ConfigEntries = []kafkago.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: strconv.FormatInt(ms, 10)}}
	}
	return retry(ctx, &cfg, client, "create topic "+name, func(ctx context.Context) error {
		ids, err := partitionsOf(ctx, client, name)
		if unknownTopic(err) {
			if err := create(ctx, client, topic); err != nil {
				return err
			}
			ids, err = partitionsOf(ctx, client, name) // the transport has asked again
		}
		switch {
		case unknownTopic(err):
			return errNotYet
		case err != nil:
			return err
		case len(ids) != partitions:
			cfg.Log.Warn("kafka: a topic has another number of partitions than configured; leaving it", "topic", name, "partitions", len(ids), "configured", partitions)
		}
		return nil
	})
}

func create(ctx context.Context, client *kafkago.Client, topic kafkago.TopicConfig) error {
	res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err != nil {
		return err
	}
	if err := res.Errors[topic.Topic]; !errors.Is(err, kafkago.TopicAlreadyExists) {
		return err
	}
	return nil
}

// errNotYet: the topic is created and not yet known everywhere.
var errNotYet = errors.New("the topic is not yet in the cluster's metadata")

// Offsets returns, for each partition of a topic, the first offset that the log
// still has and its end, the offset that the next record will get. It retries
// until ctx ends.
func Offsets(ctx context.Context, cfg Config, topic string) (first, end map[int]int64, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	client, transport := cfg.client(topic)
	defer transport.CloseIdleConnections()
	return offsets(ctx, &cfg, client, topic)
}

func offsets(ctx context.Context, cfg *Config, client *kafkago.Client, topic string) (first, end map[int]int64, err error) {
	err = retry(ctx, cfg, client, "ask for the offsets of topic "+topic, func(ctx context.Context) error {
		ids, err := partitionsOf(ctx, client, topic)
		if err != nil {
			return err
		}
		var asked []kafkago.OffsetRequest
		for _, id := range ids {
			asked = append(asked, kafkago.FirstOffsetOf(id), kafkago.LastOffsetOf(id))
		}
		res, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{topic: asked}})
		if err != nil {
			return err
		}
		first, end = make(map[int]int64), make(map[int]int64)
		for _, o := range res.Topics[topic] {
			if o.Error != nil {
				return fmt.Errorf("partition %d: %w", o.Partition, o.Error)
			}
			first[o.Partition], end[o.Partition] = o.FirstOffset, o.LastOffset
		}
		if len(first) != len(ids) {
			return fmt.Errorf("offsets of %d partitions, asked for %d", len(first), len(ids))
		}
		return nil
	})
	return first, end, err
}

// bounds is offsets for one partition, of which only its leader is asked: another
// partition that has none is no reason to wait.
func bounds(ctx context.Context, cfg *Config, client *kafkago.Client, topic string, partition int) (first, end int64, err error) {
	err = retry(ctx, cfg, client, fmt.Sprintf("ask for the offsets of topic %s, partition %d", topic, partition), func(ctx context.Context) error {
		first, end, err = askBounds(ctx, client, topic, partition)
		return err
	})
	return first, end, err
}

func askBounds(ctx context.Context, client *kafkago.Client, topic string, partition int) (first, end int64, err error) {
	res, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{
		topic: {kafkago.FirstOffsetOf(partition), kafkago.LastOffsetOf(partition)},
	}})
	if err != nil {
		return 0, 0, err
	}
	for _, o := range res.Topics[topic] {
		if o.Partition == partition {
			return o.FirstOffset, o.LastOffset, o.Error
		}
	}
	return 0, 0, fmt.Errorf("no offsets of partition %d in the answer", partition)
}

// partitionsOf lists a topic's partitions, ascending, from the transport's
// cached metadata.
func partitionsOf(ctx context.Context, client *kafkago.Client, topic string) ([]int, error) {
	res, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	for _, t := range res.Topics {
		if t.Name != topic {
			continue
		}
		if t.Error != nil {
			return nil, t.Error
		}
		ids := make([]int, len(t.Partitions))
		for i, p := range t.Partitions {
			ids[i] = p.ID
		}
		if len(ids) == 0 {
			return nil, kafkago.LeaderNotAvailable
		}
		slices.Sort(ids)
		return ids, nil
	}
	return nil, kafkago.UnknownTopicOrPartition
}

// LastRecord returns the newest record of a partition, and false if it has none.
// It reads backwards in growing steps, because the log may end in offsets
// without a record (compaction, a transaction's end). It retries until ctx ends.
func LastRecord(ctx context.Context, cfg Config, topic string, partition int) (Record, bool, error) {
	return newest(ctx, cfg, topic, partition, math.MaxInt64, 1, func(*kafkago.Message) bool { return true })
}

// LastRecordWith returns the newest record of a partition that has a header of
// the given key, and false if none of the last most offsets has one. It reads
// backwards in windows that grow from 64 offsets fourfold, each offset once, so
// it fetches at most about four times as much as lies behind the record; only the
// best record of a window is held. It retries until ctx ends.
func LastRecordWith(ctx context.Context, cfg Config, topic string, partition int, header string, most int64) (Record, bool, error) {
	return newest(ctx, cfg, topic, partition, most, 64, func(m *kafkago.Message) bool {
		return slices.ContainsFunc(m.Headers, func(h kafkago.Header) bool { return h.Key == header })
	})
}

// LastRecordWhere is [LastRecordWith] for any property of a record. A record may
// be asked about more than once.
func LastRecordWhere(ctx context.Context, cfg Config, topic string, partition int, wanted func(Record) bool, most int64) (Record, bool, error) {
	return newest(ctx, cfg, topic, partition, most, 64, func(m *kafkago.Message) bool { return wanted(fromMessage(m)) })
}

// newest returns the newest record that is wanted among a partition's last most
// offsets. It reads windows backwards, of step, 4·step, 16·step … offsets.
func newest(ctx context.Context, cfg Config, topic string, partition int, most, step int64, wanted func(*kafkago.Message) bool) (last Record, ok bool, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return last, false, err
	}
	client, transport := cfg.client(topic)
	defer transport.CloseIdleConnections()
	doing := fmt.Sprintf("read the last record of topic %s, partition %d", topic, partition)
	err = retry(ctx, &cfg, client, doing, func(ctx context.Context) error {
		first, end, err := askBounds(ctx, client, topic, partition)
		if err != nil {
			return err
		}
		if end-first > most {
			first = end - max(most, 0)
		}
		for size := step; !ok && end > first; size *= 4 {
			from := max(first, end-size)
			if last, ok, err = newestIn(ctx, &cfg, topic, partition, from, end, wanted); err != nil {
				return err
			}
			end = from
		}
		return nil
	})
	return last, ok, err
}

// newestIn returns the newest wanted record with an offset in [from, end).
func newestIn(ctx context.Context, cfg *Config, topic string, partition int, from, end int64, wanted func(*kafkago.Message) bool) (last Record, ok bool, err error) {
	wires := newWires()
	defer wires.cut()
	conn, err := cfg.dialer(wires).DialLeader(ctx, "tcp", cfg.Brokers[0], topic, partition)
	if err != nil {
		return last, false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, wires.cut)()
	if _, err := conn.Seek(from, kafkago.SeekAbsolute); err != nil {
		return last, false, err
	}
	for {
		at, _ := conn.Offset()
		if at >= end {
			return last, ok, nil
		}
		if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil { // of each fetch
			return last, false, err
		}
		batch := conn.ReadBatchWith(kafkago.ReadBatchConfig{MinBytes: 1, MaxBytes: fetchBytes, MaxWait: fetchWait})
		for {
			m, err := batch.ReadMessage()
			if err != nil || m.Offset >= end {
				break
			}
			if m.Offset >= from && wanted(&m) {
				last, ok = fromMessage(&m), true
			}
		}
		if err := batch.Close(); err != nil {
			return last, false, err
		}
		if now, _ := conn.Offset(); now == at {
			return last, ok, nil // nothing but the log's own records up to the end
		}
	}
}
