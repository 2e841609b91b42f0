package eventlog

import (
	"fmt"
	"iter"

	"hamlet/cmd/internal/data/source"
	"hamlet/stream"
)

// Items returns the records of the log of this name as a labelled source gives its events. A record
// that cannot be decoded is a *source.Rejection: the learner makes it a dead letter.
func Items(name string, records Records) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		n := 0
		for r, err := range records {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			item, err := itemOf(r)
			if err != nil {
				err = &source.Rejection{Ordinal: n, Place: fmt.Sprintf("%s, offset %d", name, r.Offset), Err: err}
			}
			item.Ordinal = n
			if n++; !yield(item, err) {
				return
			}
		}
	}
}

func itemOf(r *stream.Record) (item source.Item, err error) {
	if stream.IsStanding(r.Headers) {
		s, err := stream.DecodeStandingRecord(r.Headers, r.Value)
		item.Standing = &s
		return item, err
	}
	if item.Event, err = stream.DecodeRecord(r.Headers, r.Value); err != nil {
		return item, err
	}
	item.Truth = item.Event.Label
	return item, nil
}
