package orderlog

import (
	"context"
	"errors"
	"iter"

	"hamlet/cmd/internal/eventlog"
	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// errEnough: whoever takes the items wants no more.
var errEnough = errors.New("enough")

// Items returns the events of Read as a labelled source gives them. A record that cannot
// be decoded is a *source.Rejection: the learner made it a dead letter.
func Items(ctx context.Context, cfg Config) iter.Seq2[source.Item, error] {
	return eventlog.Items(cfg.Events, func(yield func(*stream.Record, error) bool) {
		err := Read(ctx, cfg, func(r *kafka.Record) error {
			if !yield(&stream.Record{Offset: r.Offset, Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	})
}
