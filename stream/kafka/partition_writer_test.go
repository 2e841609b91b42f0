package kafka

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Each call has its own grace period for an unknown topic.
func TestDoubtIsNotInherited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPartitionWriter(topicPartition{}, &Config{}, nil)
		unknown := kafkago.UnknownTopicOrPartition
		settle := func(ctx context.Context) (b *batch, err error) {
			b = &batch{records: make([]Record, 1), done: make(chan struct{})}
			return b, w.settle(ctx, []part{{b, 1}}, 1, unknown)
		}
		gone, cancel := context.WithCancel(t.Context())
		if _, err := settle(gone); err == nil {
			t.Fatal("no doubt")
		}
		cancel()
		if _, err := settle(gone); err == nil {
			t.Fatal("a call that was given up came to a verdict")
		}
		for range 2 {
			<-time.After(10 * gracePeriod)
			if b, err := settle(t.Context()); err == nil || b.err != nil {
				t.Fatalf("a verdict at the first failure: %v", b.err)
			}
			<-time.After(gracePeriod + 1)
			if b, err := settle(t.Context()); err != nil || !errors.Is(b.err, ErrUnknownTopic) {
				t.Fatalf("after %v of doubt: verdict %v, error %v", gracePeriod, b.err, err)
			}
		}
	})
}

// One test per row of settle's table.
func TestSettle(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		outcome      string
		ctx          context.Context
		err          error
		records      int
		again, ended bool  // settle returns an error; the batch is done
		failure      error // of the batch
		acked        int
		maxRecords   int
	}{
		{"a part is acknowledged", t.Context(), nil, 1, false, false, nil, 1, maxRequestRecords},
		{"all are acknowledged", t.Context(), nil, 2, false, true, nil, 2, maxRequestRecords},
		{"ctx ended", ended, kafkago.LeaderNotAvailable, 2, true, false, nil, 0, maxRequestRecords},
		{"too large together", t.Context(), kafkago.MessageSizeTooLarge, 2, false, false, nil, 0, 1},
		{"too large alone", t.Context(), kafkago.MessageSizeTooLarge, 1, false, true, ErrTooLarge, 0, maxRequestRecords},
		{"permanent", t.Context(), kafkago.TopicAuthorizationFailed, 2, false, true, ErrAuth, 0, maxRequestRecords},
		{"unknown topic, in the grace period", t.Context(), kafkago.UnknownTopicOrPartition, 2, true, false, nil, 0, maxRequestRecords},
		{"transient", t.Context(), kafkago.LeaderNotAvailable, 2, true, false, nil, 0, maxRequestRecords},
	} {
		t.Run(c.outcome, func(t *testing.T) {
			w := newPartitionWriter(topicPartition{}, &Config{}, nil)
			b := &batch{records: make([]Record, 2), done: make(chan struct{})}
			w.queue = []*batch{b}
			err := w.settle(c.ctx, []part{{b, c.records}}, c.records, c.err)
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
