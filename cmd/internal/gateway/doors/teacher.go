package doors

import (
	"context"
	"fmt"

	"hamlet/cmd/internal/ingest"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Teacher writes events to the topic that the learner reads. It is a
// [hamlet/cmd/internal/gateway.Teacher].
type Teacher struct {
	Producer interface {
		Publish(ctx context.Context, records ...kafka.Record) error
	}
	Topic string
}

// Publish returns once Kafka has acknowledged all events from all in-sync replicas.
func (t Teacher) Publish(ctx context.Context, events ...stream.Event) error {
	records, trace := make([]kafka.Record, len(events)), stream.ContextTrace(ctx)
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return fmt.Errorf("label: %w", err)
		}
		var err error
		if records[i], err = ingest.Record(&events[i], t.Topic); err != nil {
			return err
		}
		records[i].Headers = trace.AppendHeader(records[i].Headers)
	}
	return t.Producer.Publish(ctx, records...)
}
