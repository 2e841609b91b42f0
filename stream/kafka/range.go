package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// ReadRange calls each with the records of a partition whose offsets are in [from, end), in
// order, each once. It keeps no more than one fetch in memory. After a failure it goes on
// behind the last record, and retries until ctx ends. An error of each ends it at once, and
// so does an offset that the log no longer has: that error wraps kafkago.OffsetOutOfRange.
// Offsets that compaction has emptied are passed over.
func ReadRange(ctx context.Context, cfg Config, topic string, partition int, from, end int64, each func(*Record) error) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	client := cfg.client(topic)
	defer closeIdle(client)
	r := rangeReader{cfg: &cfg, topic: topic, partition: partition, next: from, end: end, each: each}
	doing := fmt.Sprintf("read offsets %d to %d of topic %s, partition %d", from, end, topic, partition)
	err = retry(ctx, &cfg, client, doing, func(ctx context.Context) error {
		err := r.read(ctx)
		if r.final == nil && errors.Is(err, kafkago.OffsetOutOfRange) {
			r.final = fmt.Errorf("%s: offset %d is not in the log: %w", doing, r.next, err)
		}
		if r.final != nil {
			return nil
		}
		return err
	})
	return errors.Join(r.final, err)
}

// A rangeReader reads the offsets next to end−1.
type rangeReader struct {
	cfg       *Config
	topic     string
	partition int
	next, end int64 // only read advances next
	each      func(*Record) error
	final     error // not to be retried
}

// read reads over one connection.
func (r *rangeReader) read(ctx context.Context) error {
	if r.next >= r.end {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dialLeader(ctx, r.cfg, r.topic, r.partition)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	if _, err := conn.Seek(r.next, kafkago.SeekAbsolute); err != nil {
		return err
	}
	for r.next < r.end {
		at, _ := conn.Offset()
		if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil { // of each fetch
			return err
		}
		batch := conn.ReadBatchWith(kafkago.ReadBatchConfig{MinBytes: 1, MaxBytes: fetchBytes, MaxWait: fetchWait})
		for r.final == nil {
			m, err := batch.ReadMessage()
			if err != nil || m.Offset >= r.end {
				break
			}
			if m.Offset < r.next {
				continue
			}
			record := fromMessage(&m)
			record.Topic, record.Partition = r.topic, r.partition
			r.final = r.each(&record)
			r.next = m.Offset + 1
		}
		if r.final != nil {
			_ = batch.Close()
			return nil
		}
		if err := batch.Close(); err != nil {
			return err
		}
		now, _ := conn.Offset()
		if now == at || now >= r.end { // only control records are left up to the end
			return nil
		}
	}
	return nil
}

// OffsetsSince returns, for each partition of a topic, the first offset with a record that
// was written at t or later: the log's end if there is none. It retries until ctx ends.
func OffsetsSince(ctx context.Context, cfg Config, topic string, t time.Time) (since map[int]int64, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	client := cfg.client(topic)
	defer closeIdle(client)
	err = retry(ctx, &cfg, client, "find the offsets of a time in topic "+topic, func(ctx context.Context) error {
		ids, err := partitionsOf(ctx, &cfg, client, topic)
		if err != nil {
			return err
		}
		if _, since, err = listOffsets(ctx, client, topic, ids...); err != nil {
			return err
		}
		var requests []kafkago.OffsetRequest
		for _, id := range ids {
			requests = append(requests, kafkago.TimeOffsetOf(id, t))
		}
		res, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{topic: requests}})
		if err != nil {
			return err
		}
		for _, p := range res.Topics[topic] {
			if p.Error != nil {
				return p.Error
			}
			for offset := range p.Offsets {
				if offset >= 0 {
					since[p.Partition] = offset
				}
			}
		}
		return nil
	})
	return since, err
}
