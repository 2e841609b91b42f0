package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// A Log says whether the log of one partition goes on where a checkpoint ends.
type Log struct {
	Topic     string     `json:"topic"`
	Partition int        `json:"partition"`
	From      int64      `json:"from"`            // the records from this offset on are needed
	First     int64      `json:"first"`           // the topic has the offsets first to end−1
	End       int64      `json:"end"`             //
	Until     *time.Time `json:"until,omitempty"` // retention deletes none of the needed records before; none: it is not known, or never
	Forever   bool       `json:"forever"`         // retention deletes nothing
	Problem   string     `json:"problem,omitempty"`
}

// logs says how far the logs of a checkpoint go on: of a model of several partitions, the order
// log and then that of each partition. An error is one of asking.
func logs(ctx context.Context, cfg kafka.Config, model, events string, partition int, m *state.Manifest) ([]Log, error) {
	if len(m.Order) == 0 {
		l, err := goesOn(ctx, cfg, stream.EventsTopic(events), partition, m.Position)
		return []Log{l}, err
	}
	var s sequencer.State
	if err := s.UnmarshalBinary(m.Order); err != nil {
		return nil, err
	}
	topic := order.Topic(model)
	if n, err := kafka.Partitions(ctx, cfg, topic); err != nil {
		return nil, err
	} else if n == 0 {
		topic = order.Topic(events) // of a model that follows the order of another one
	}
	l, err := goesOn(ctx, cfg, topic, 0, m.Position)
	if err != nil {
		return nil, err
	}
	all := []Log{l}
	for i := range s.Places {
		l, err := goesOn(ctx, cfg, stream.EventsTopic(events), i, s.Places[i].Position)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// goesOn compares one partition with the position that a checkpoint has in it, as a learner
// does when it starts.
func goesOn(ctx context.Context, cfg kafka.Config, topic string, partition int, at state.Position) (Log, error) {
	l := Log{Topic: topic, Partition: partition, From: at.Next}
	n, err := kafka.Partitions(ctx, cfg, topic)
	if err != nil {
		return l, err
	}
	if partition >= n {
		l.Problem = fmt.Sprintf("there is no partition %d of topic %s", partition, topic)
		if n == 0 {
			l.Problem = fmt.Sprintf("there is no topic %s; --events-of NAME=OTHER says whose events a model learns", topic)
		}
		return l, nil
	}
	first, end, err := kafka.Offsets(ctx, cfg, topic)
	if err != nil {
		return l, err
	}
	l.First, l.End = first[partition], end[partition]
	switch {
	case l.From > l.End:
		l.Problem = fmt.Sprintf("the log ends at offset %d: it lost records, or is another log", l.End)
		return l, nil
	case l.From < l.First:
		l.Problem = fmt.Sprintf("retention has deleted the offsets %d to %d, which the model has not learnt", l.From, l.First-1)
		return l, nil
	}
	oldest := time.Now() // what is needed next is written from now on
	from, to := max(l.From-1, l.First), min(l.From+1, l.End)
	err = kafka.ReadRange(ctx, cfg, topic, partition, from, to, func(r *kafka.Record) error {
		switch r.Offset {
		case l.From - 1:
			if !at.Follows(r.Key, r.Value, chained(r.Headers)...) {
				l.Problem = fmt.Sprintf("it is another log: the record at offset %d is not the one that the model learnt last", r.Offset)
			}
		case l.From:
			oldest = r.Time
		}
		return nil
	})
	if errors.Is(err, kafkago.OffsetOutOfRange) { // retention was faster than this command
		l.Problem, err = fmt.Sprintf("the log has no offset %d any more", from), nil
	}
	if err != nil || l.Problem != "" {
		return l, err
	}
	return l, l.keep(ctx, cfg, oldest)
}

// keep says until when retention leaves the needed records, of which oldest is the time of the
// first. Kafka deletes a record at this time at the earliest. Where the topic is bounded by its
// size as well, or where this user may not read its settings, that is not known.
func (l *Log) keep(ctx context.Context, cfg kafka.Config, oldest time.Time) error {
	d, bounded, err := kafka.Retention(ctx, cfg, l.Topic)
	switch {
	case errors.Is(err, kafka.ErrAuth):
		return nil
	case err != nil:
		return err
	case bounded:
	case d < 0:
		l.Forever = true
	default:
		until := oldest.Add(d).UTC().Truncate(time.Second)
		l.Until = &until
	}
	return nil
}

// String says all of it in a sentence.
func (l *Log) String() string {
	where := fmt.Sprintf("topic %s, partition %d: needed from offset %d on", l.Topic, l.Partition, l.From)
	if l.Problem != "" {
		return where + ". It does not go on there: " + l.Problem
	}
	kept := "until when they are kept is not known here"
	switch {
	case l.Forever:
		kept = "kept for ever"
	case l.Until != nil:
		kept = "kept until " + stamp(*l.Until) + " at least"
	}
	if l.From == l.End {
		return where + ". Nothing follows yet; what is written now is " + kept
	}
	return fmt.Sprintf("%s. %d follow, %s", where, l.End-l.From, kept)
}

func chained(headers []kafka.Header) []state.Header {
	all := make([]state.Header, len(headers))
	for i, h := range headers {
		all[i] = state.Header{Key: h.Key, Value: h.Value}
	}
	return all
}
