package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

const (
	// fetchWait is the longest that a broker holds a fetch open. New records end it at once.
	fetchWait = 250 * time.Millisecond
)

// LastRecord returns the newest record of a partition for which wanted returns true
// (nil: any), and false if there is none among the last limit offsets. It may call
// wanted more than once for a record. It retries until ctx ends.
//
// It reads backwards in windows of 64, 256, … offsets. So it fetches at most about four
// times the records that follow the result.
func LastRecord(ctx context.Context, cfg Config, topic string, partition int, limit int64, wanted func(Record) bool) (last Record, ok bool, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return last, false, err
	}
	client := cfg.client(topic)
	defer closeIdle(client)
	doing := fmt.Sprintf("read the last record of topic %s, partition %d", topic, partition)
	err = retry(ctx, &cfg, client, doing, func(ctx context.Context) error {
		firsts, ends, err := listOffsets(ctx, client, topic, partition)
		if err != nil {
			return err
		}
		first, end := firsts[partition], ends[partition]
		if end-first > limit {
			first = end - max(limit, 0)
		}
		for size := int64(64); !ok && end > first; size *= 4 {
			from := max(first, end-size)
			if last, ok, err = lastIn(ctx, &cfg, topic, partition, from, end, wanted); err != nil {
				return err
			}
			end = from
		}
		return nil
	})
	return last, ok, err
}

// lastIn returns the newest wanted record with an offset in [from, end).
func lastIn(ctx context.Context, cfg *Config, topic string, partition int, from, end int64, wanted func(Record) bool) (last Record, ok bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dialLeader(ctx, cfg, topic, partition)
	if err != nil {
		return last, false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return last, false, err
	}
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
			if m.Offset < from {
				continue
			}
			if r := fromMessage(&m); wanted == nil || wanted(r) {
				last, ok = r, true
			}
		}
		if err := batch.Close(); err != nil {
			return last, false, err
		}
		if now, _ := conn.Offset(); now == at {
			return last, ok, nil // only control records are left up to the end
		}
	}
}

// dialLeader connects to the leader of a partition. It asks the brokers of cfg in turn
// who that is, each for at most requestTimeout.
func dialLeader(ctx context.Context, cfg *Config, topic string, partition int) (conn *kafkago.Conn, err error) {
	for _, broker := range cfg.Brokers {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		conn, err = cfg.dialer(ctx).DialLeader(attempt, "tcp", broker, topic, partition)
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// recordAt returns the record at an offset, and false if the log has none there. It
// fetches the batch of that offset, and retries until ctx ends. An offset outside the log
// is an error at once; it wraps kafkago.OffsetOutOfRange.
func recordAt(ctx context.Context, cfg *Config, client *kafkago.Client, topic string, partition int, offset int64) (record Record, ok bool, err error) {
	var outside error // not to be retried
	err = retry(ctx, cfg, client, fmt.Sprintf("read offset %d of topic %s, partition %d", offset, topic, partition), func(ctx context.Context) error {
		res, err := client.Fetch(ctx, &kafkago.FetchRequest{
			Topic: topic, Partition: partition, Offset: offset,
			MinBytes: 1,
			MaxBytes: 1, // a batch is never cut, and one always comes
			MaxWait:  fetchWait,
		})
		if err != nil {
			return err
		}
		if errors.Is(res.Error, kafkago.OffsetOutOfRange) {
			outside = fmt.Errorf("offset %d: %w", offset, res.Error)
			return nil
		}
		if res.Error != nil {
			return res.Error
		}
		record, ok, err = pick(res.Records, offset)
		return err
	})
	record.Topic, record.Partition = topic, partition
	return record, ok, errors.Join(err, outside)
}

// pick reads records to their end and returns the one at an offset.
func pick(records kafkago.RecordReader, offset int64) (picked Record, ok bool, err error) {
	for {
		r, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return picked, ok, nil
		}
		if err != nil {
			return picked, false, err
		}
		key, keyErr := content(r.Key)
		value, valueErr := content(r.Value)
		if err := errors.Join(keyErr, valueErr); err != nil {
			return picked, false, err
		}
		if r.Offset == offset {
			m := kafkago.Message{Offset: offset, Key: key, Value: value, Time: r.Time, Headers: r.Headers}
			picked, ok = fromMessage(&m), true
		}
	}
}

// content reads a key or a value, and returns its memory to the fetch.
func content(b kafkago.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	defer b.Close()
	return protocol.ReadAll(b)
}
