package doors

import (
	"context"
	"fmt"

	"hamlet/cmd/internal/service/ingest"
	"hamlet/stream"
)

// A Teacher writes events to the log that the learner reads. It is a
// [gateway.Teacher].
type Teacher struct {
	Events stream.Appender
	Ask    ingest.Asking // which labels were asked for
}

// Publish returns once all events are durable.
func (t Teacher) Publish(ctx context.Context, events ...stream.Event) error {
	records, trace := make([]stream.Record, len(events)), stream.ContextTrace(ctx)
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return fmt.Errorf("label: %w", err)
		}
		var err error
		if records[i], err = t.Ask.Record(&events[i]); err != nil {
			return err
		}
		records[i].Headers = trace.AppendHeader(records[i].Headers)
	}
	return t.Events.Append(ctx, records...)
}
