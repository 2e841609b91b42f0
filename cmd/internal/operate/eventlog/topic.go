package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Of returns the log of a model, whether it exists or not.
func Of(brokers stream.Logs, model string) (*Log, error) {
	topic := stream.EventsTopic(model)
	log, err := brokers.Open(topic)
	if err != nil {
		return nil, err
	}
	impatient := brokers
	if cfg, ok := brokers.(kafka.Config); ok {
		cfg.MaxOutage = 1
		impatient = cfg
	}
	to, err := impatient.Open(topic)
	if err != nil {
		return nil, err
	}
	return &Log{Config: reads(brokers, log, topic), to: once{to},
		close: func() error { return errors.Join(log.Close(), to.Close()) }}, nil
}

// reads says how a log is read.
func reads(brokers stream.Logs, log stream.Log, topic string) follow.Config {
	return follow.Config{Log: log, Name: "topic " + topic, MaxOutage: brokers.Patience(), Logger: brokers.Logger()}
}

// A once is a log whose outage ends with its first failure, so that it sends no request again.
type once struct{ stream.Topic }

func (o once) Append(ctx context.Context, records ...stream.Record) error {
	err := o.Topic.Append(ctx, records...)
	if errors.Is(err, kafka.ErrOutage) {
		return fmt.Errorf("%w: %v", stream.ErrAway, err)
	}
	return err
}

// A PartitionsError says that a topic has several partitions, and so is no log.
type PartitionsError struct {
	Topic      string
	Partitions int
	Order      Order
}

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("topic %s has %d partitions, and the log of a model has one", e.Topic, e.Partitions)
}

// An Order says whether one model learnt all partitions of a topic, in an order of its own. 0.1.0
// wrote that order to another topic, and has read it since.
type Order uint8

const (
	NoOrder Order = iota
	Ordered
	OrderUnknown // this user may not see whether there is that other topic
)

// orderTopic returns the topic of the order in which a model of 0.1.0 learnt several partitions.
func orderTopic(model string) string { return "hamlet.order." + model }

// Open returns the log of a model. Its error is a *PartitionsError, or wraps ErrNone or
// follow.ErrNoBeginning, if there is none that can be read from its beginning.
func Open(ctx context.Context, brokers stream.Logs, model string) (*Log, error) {
	topic := stream.EventsTopic(model)
	switch n, err := brokers.Partitions(ctx, topic); {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, fmt.Errorf("%w: there is no topic %s", ErrNone, topic)
	case n > 1:
		order, err := orderOf(ctx, brokers, model)
		return nil, errors.Join(&PartitionsError{topic, n, order}, err)
	}
	log, err := Of(brokers, model)
	if err != nil {
		return nil, err
	}
	b, err := follow.Bounds(ctx, log.Config)
	if err == nil && b.First > 0 {
		err = fmt.Errorf("%w: %s begins at offset %d, so the model cannot be learnt again",
			follow.ErrNoBeginning, log.Name, b.First)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// orderOf asks whether 0.1.0 wrote in which order the model learnt several partitions. Kafka refuses
// to say so to a user without the right to see that topic, whether it exists or not.
func orderOf(ctx context.Context, brokers stream.Logs, model string) (Order, error) {
	switch n, err := brokers.Partitions(ctx, orderTopic(model)); {
	case errors.Is(err, stream.ErrDenied):
		return OrderUnknown, nil
	case err != nil:
		return OrderUnknown, fmt.Errorf("ask whether one model learnt all partitions: %w", err)
	case n > 0:
		return Ordered, nil
	}
	return NoOrder, nil
}

// Make returns the log of a model, to be filled with records. It makes the topic if it is missing, as topic says,
// unless that would delete the first record. oldest is the time before which records would be
// deleted, zero if they are kept for ever, or nobody says for how long.
func Make(ctx context.Context, brokers stream.Logs, model string, records Records, topic settings.Topic) (
	log *Log, oldest time.Time, err error) {
	name := stream.EventsTopic(model)
	switch n, err := brokers.Partitions(ctx, name); {
	case err != nil:
		return nil, oldest, err
	case n > 1:
		return nil, oldest, &PartitionsError{Topic: name, Partitions: n}
	case n == 0:
		for r, err := range records { // only the first
			if err == nil {
				err = fresh(r, 0, before(topic.Retention))
			}
			if err != nil {
				return nil, oldest, err
			}
			break
		}
		if err := brokers.Ensure(ctx, name, topic.Replication, topic.Retention); err != nil {
			return nil, oldest, err
		}
	}
	d, _, err := brokers.Retention(ctx, name)
	if err != nil && !errors.Is(err, stream.ErrDenied) { // what is deleted is seen at the end
		return nil, oldest, err
	}
	log, err = Of(brokers, model)
	return log, before(d), err
}

// before is the time a duration ago. 0 and less is for ever.
func before(d time.Duration) (t time.Time) {
	if d > 0 {
		t = time.Now().Add(-d)
	}
	return t
}

// fresh returns an error if record number n is older than oldest, which is zero for none.
func fresh(r *stream.Record, n int, oldest time.Time) error {
	if oldest.IsZero() || !r.Time.Before(oldest) {
		return nil
	}
	return fmt.Errorf("record %d is of %s, and the topic keeps records for %v: %w", n+1,
		r.Time.UTC().Format(time.RFC3339), time.Since(oldest).Round(time.Second), ErrOld)
}
