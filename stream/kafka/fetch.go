package kafka

import (
	"context"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
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
