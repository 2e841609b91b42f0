package orderlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// errEnough: whoever takes the items wants no more.
var errEnough = errors.New("enough")

// Items returns the events of Read as a labelled source gives them. A record that cannot
// be decoded is a *source.Rejection: the learner made it a dead letter.
func Items(ctx context.Context, cfg Config) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		n := 0
		err := Read(ctx, cfg, func(r *kafka.Record) error {
			wanted := yield(itemAt(n, r))
			if n++; !wanted {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(source.Item{}, err)
		}
	}
}

// itemAt returns a record as the item number n.
func itemAt(n int, r *kafka.Record) (source.Item, error) {
	item, err := itemOf(r)
	item.Ordinal = n
	if err != nil {
		err = &source.Rejection{Ordinal: n, Place: fmt.Sprintf("%s, partition %d, offset %d", r.Topic, r.Partition, r.Offset), Err: err}
	}
	return item, err
}

func itemOf(r *kafka.Record) (item source.Item, err error) {
	if stream.IsStanding(r.Headers) {
		s, err := stream.DecodeStandingRecord(r.Headers, r.Value)
		item.Standing = &s
		return item, err
	}
	if item.Event, err = stream.DecodeRecord(r.Headers, r.Value); err != nil {
		return item, err
	}
	item.Truth = item.Event.Label
	text, _ := stream.FindHeader(r.Headers, stream.HeaderTrueLabel)
	if given, err := stream.ParseLabel(text); err == nil && given != stream.Unlabelled {
		item.Truth = given
	}
	return item, nil
}
