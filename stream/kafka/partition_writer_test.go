package kafka

import (
	"errors"
	"testing"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/stream"
)

// One test per row of settle's table.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		outcome      string
		err          error
		records      int
		again, ended bool  // settle returns an error; the batch is done
		failure      error // of the batch
		acked        int
		maxRecords   int
	}{
		{"a part is acknowledged", nil, 1, false, false, nil, 1, maxRequestRecords},
		{"all are acknowledged", nil, 2, false, true, nil, 2, maxRequestRecords},
		{"too large together", kafkago.MessageSizeTooLarge, 2, false, false, nil, 0, 1},
		{"too large alone", kafkago.MessageSizeTooLarge, 1, false, true, ErrTooLarge, 0, maxRequestRecords},
		{"permanent", kafkago.TopicAuthorizationFailed, 2, false, true, ErrAuth, 0, maxRequestRecords},
		{"a clock that is wrong", kafkago.InvalidTimestamp, 2, false, true, kafkago.InvalidTimestamp, 0, maxRequestRecords},
		{"unknown topic, not final", kafkago.UnknownTopicOrPartition, 2, true, false, nil, 0, maxRequestRecords},
		{"transient", kafkago.LeaderNotAvailable, 2, true, false, nil, 0, maxRequestRecords},
	} {
		t.Run(c.outcome, func(t *testing.T) {
			w := newPartitionWriter(&Log{living: t.Context()})
			b := &batch{records: make([]stream.Record, 2), done: make(chan struct{})}
			w.queue = []*batch{b}
			err := w.settle([]inFlight{{b, c.records}}, c.records, c.err, permanent(c.err))
			done := false
			select {
			case <-b.done:
				done = true
			default:
			}
			if (err != nil) != c.again || done != c.ended || !errors.Is(b.err, c.failure) || b.acked != c.acked || w.maxRecords != c.maxRecords {
				t.Errorf("send again %v, done %v with %v, %d acknowledged, then %d records a request; want %+v", err, done, b.err, b.acked, w.maxRecords, c)
			}
			if queued := len(w.queue) == 1; queued == done {
				t.Errorf("in the queue: %v; done: %v", queued, done)
			}
		})
	}
}
