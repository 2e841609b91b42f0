package kafka

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Each call doubts for itself whether a topic is there.
func TestDoubtIsNotInherited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lane{cfg: &Config{}}
		unknown := kafkago.UnknownTopicOrPartition
		settle := func(ctx context.Context) (p *parcel, err error) {
			p = &parcel{records: make([]Record, 1), done: make(chan struct{})}
			return p, l.settle(ctx, []part{{p, 1}}, 1, unknown)
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
			<-time.After(10 * patience)
			if p, err := settle(t.Context()); err == nil || p.err != nil {
				t.Fatalf("a verdict at the first failure: %v", p.err)
			}
			<-time.After(patience + 1)
			if p, err := settle(t.Context()); err != nil || !errors.Is(p.err, ErrUnknownTopic) {
				t.Fatalf("after %v of doubt: verdict %v, error %v", patience, p.err, err)
			}
		}
	})
}
