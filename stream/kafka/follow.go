package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// follow asks the handler whether the record before its position is the one that
// it has absorbed, and returns ErrReplaced if not. Where compaction has taken the
// record there is nothing to ask. Its error wraps kafkago.OffsetOutOfRange if the
// broker says that the offset is not in the log.
func (s *session) follow(ctx context.Context) error {
	last, ok, err := recordAt(ctx, &s.cfg.Config, s.client, s.cfg.Topic, s.partition, s.next-1)
	if err != nil || !ok || s.handler.Follows(last) {
		return err
	}
	return fmt.Errorf("%w: the state has absorbed offsets below %d, and the log has another record at offset %d; the topic was deleted and created anew or this is another cluster: name the right one, or begin anew, with a model of another name or by replaying this log into an empty state",
		ErrReplaced, s.next, last.Offset)
}

// recordAt returns the record at an offset, and false if the log has none there.
// It fetches the one batch that the offset is in, and retries until ctx ends; an
// offset that is not within the log is an error at once.
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
		if r.Offset != offset {
			continue
		}
		picked, ok = Record{Offset: offset, Key: key, Value: value, Time: r.Time}, true
		for _, h := range r.Headers {
			picked.Headers = append(picked.Headers, Header{Key: h.Key, Value: h.Value})
		}
	}
}

// content reads a key or a value, and gives its memory back to the fetch.
func content(b kafkago.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	defer b.Close()
	return protocol.ReadAll(b)
}
