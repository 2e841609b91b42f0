// Package orderlog reads the events of a model of several partitions from a cluster, in the
// order of the model's log. It only reads.
//
//	cfg := orderlog.Config{Kafka: brokers, Events: stream.EventsTopic("default"), Order: order.Topic("default")}
//	err := orderlog.Read(ctx, cfg, func(r *kafka.Record) error { … })
package orderlog

import (
	"context"
	"errors"
	"fmt"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// A Config names what is read.
type Config struct {
	Kafka  kafka.Config
	Events string // the topic of the events
	Order  string // the topic of the order log
	End    int64  // read the order log up to this offset; 0: to its end of now
}

// Read calls each with the model's records, in its order. A range of the log is in memory
// at a time. It retries until ctx ends. It is an error if the order log or the events it
// names are not there from the beginning, or are others.
func Read(ctx context.Context, cfg Config, each func(*kafka.Record) error) error {
	var s sequencer.State
	return Follow(ctx, cfg, &s, each)
}

// Follow is Read from where s stands. It moves s. It is an error if s has followed another
// order log.
func Follow(ctx context.Context, cfg Config, s *sequencer.State, each func(*kafka.Record) error) error {
	return walk(ctx, &cfg, s, func(d *sequencer.Decision) error {
		switch {
		case d.Outcome == sequencer.Began && d.Record.Model != ([32]byte{}):
			return fmt.Errorf("topic %s goes on from a model with SHA-256 %x, which is not in it", cfg.Order, d.Record.Model)
		case d.Take == nil:
			return nil
		}
		return take(ctx, &cfg, s, d.Take, each)
	})
}

// A Range is a range of a partition's offsets that a model takes in one step.
type Range struct {
	Partition int
	From, To  int64 // the offsets From to To−1
}

// Ranges calls each with the ranges of the order log in its order. It does not read the
// events, and so does not compare them.
func Ranges(ctx context.Context, cfg Config, each func(Range) error) error {
	_, err := Walk(ctx, cfg, func(d *sequencer.Decision) error {
		if d.Take == nil {
			return nil
		}
		return each(Range{d.Take.Partition, d.Take.From, d.Take.To})
	})
	return err
}

// Walk calls each with what the records of the order log mean, and returns where they end. It
// does not read the events, and so does not compare them.
func Walk(ctx context.Context, cfg Config, each func(*sequencer.Decision) error) (*sequencer.State, error) {
	var s sequencer.State
	err := walk(ctx, &cfg, &s, func(d *sequencer.Decision) error {
		if t := d.Take; t != nil {
			if err := s.FinishAt(t, state.Position{Next: t.To, Chain: d.Record.Chain, Before: d.Record.Chain}); err != nil {
				return err
			}
		}
		return each(d)
	})
	return &s, err
}

// walk applies the order log from where s stands. each ends the take of a decision.
func walk(ctx context.Context, cfg *Config, s *sequencer.State, each func(*sequencer.Decision) error) error {
	first, end, err := kafka.Offsets(ctx, cfg.Kafka, cfg.Order)
	if err != nil {
		return err
	}
	if cfg.End > 0 && cfg.End <= end[0] {
		end[0] = cfg.End
	}
	switch from := max(s.Log.Next, cfg.End); {
	case s.Log.Next == 0 && first[0] > 0:
		return fmt.Errorf("%w: topic %s begins at offset %d, so the model cannot be learnt again", kafka.ErrNoBeginning, cfg.Order, first[0])
	case from > end[0]:
		return fmt.Errorf("%w: topic %s ends at offset %d, not at %d", kafka.ErrBehind, cfg.Order, end[0], from)
	}
	known := s.Log.Next // the record before it is the last that s has followed
	return kafka.ReadRange(ctx, cfg.Kafka, cfg.Order, 0, max(known-1, first[0]), end[0], func(r *kafka.Record) error {
		if r.Offset < known {
			if r.Offset == known-1 && !s.Log.Follows(r.Key, r.Value, headers(r)...) {
				return fmt.Errorf("%w: topic %s, offset %d", kafka.ErrReplaced, cfg.Order, r.Offset)
			}
			return nil
		}
		d, err := s.Apply(r.Offset, r.Key, r.Value, headers(r)...)
		if err != nil {
			return err
		}
		return each(&d)
	})
}

// take reads a range, checks it and hands it over.
func take(ctx context.Context, cfg *Config, s *sequencer.State, t *sequencer.Take, each func(*kafka.Record) error) error {
	var records []kafka.Record
	err := kafka.ReadRange(ctx, cfg.Kafka, cfg.Events, t.Partition, t.From, t.To, func(r *kafka.Record) error {
		t.Add(r.Offset, r.Key, r.Value, headers(r)...)
		if records = append(records, *r); len(records) > order.MaxRange {
			return fmt.Errorf("partition %d, offsets %d to %d: %w", t.Partition, t.From, t.To-1, sequencer.ErrLong)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	if err := s.Finish(t); err != nil {
		return err
	}
	for i := range records {
		if err := each(&records[i]); err != nil {
			return err
		}
	}
	return nil
}

func headers(r *kafka.Record) []state.Header {
	chained := make([]state.Header, len(r.Headers))
	for i, h := range r.Headers {
		chained[i] = state.Header{Key: h.Key, Value: h.Value}
	}
	return chained
}
