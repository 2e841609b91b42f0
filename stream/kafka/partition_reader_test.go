package kafka

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// A generation that has ended opens no handler, because nobody would wait for it.
func TestAssignmentOfAnEndedGeneration(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	m := &member{open: func(context.Context, int) (Handler, error) {
		t.Error("a handler was opened")
		return nil, errors.New("too late")
	}}
	m.readPartition(t.Context(), ended, nil, 0)
}

// A failing reader fails at the moment when the poll ends.
type failing struct{ err error }

func (f failing) Stats() kafkago.ReaderStats { return kafkago.ReaderStats{} }
func (f failing) FetchMessage(ctx context.Context) (kafkago.Message, error) {
	<-ctx.Done()
	if f.err == nil {
		return kafkago.Message{}, ctx.Err()
	}
	return kafkago.Message{}, f.err
}

func TestErrorAtTheEndOfAPoll(t *testing.T) {
	for _, want := range []error{nil, io.ErrUnexpectedEOF, kafkago.OffsetOutOfRange} {
		synctest.Test(t, func(t *testing.T) {
			r := &partitionReader{member: &member{cfg: &ConsumerConfig{PollInterval: time.Second}}}
			batch, quiet, err := r.fetch(t.Context(), failing{want}, nil)
			if len(batch) != 0 || quiet != (want == nil) || err != want {
				t.Errorf("a reader's %v: %d records, quiet %v, error %v", want, len(batch), quiet, err)
			}
		})
	}
}
