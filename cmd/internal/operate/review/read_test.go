package review

import (
	"context"
	"fmt"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

func connectNATS(t *testing.T) *natsgo.Conn {
	t.Helper()
	n, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	conn, err := nats.Connect(nats.Config{URL: n.URL(), Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// A reader takes what is new, also from a journal that was made again.
func TestReaderFollows(t *testing.T) {
	conn := connectNATS(t)
	batch := 0
	write := func(labels bool, lines ...*stream.JournalEntry) {
		t.Helper()
		j, err := nats.NewJournal(conn, nats.JournalConfig{Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		batch++
		var all []stream.JournalEntry
		for _, l := range lines {
			l.Time = time.Now()
			all = append(all, *l)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		// A server that still removes a deleted stream's files refuses to make it again.
		for {
			err := j.Append(ctx, fmt.Sprint(batch), all)
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	r := NewReader(conn, "default", time.Hour)
	seen := 0
	r.OnLabel = func(e *stream.JournalEntry) { seen++ }
	refresh := func(want string) {
		t.Helper()
		r.next = time.Time{}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := r.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		best, _ := r.Best(10, r.Since(), nil, nil)
		got := ""
		for _, item := range best {
			got += item.ID[31:]
		}
		if got != want {
			t.Errorf("the queue is %q, want %q", got, want)
		}
	}
	refresh("") // no journal
	write(false, answer(1, 0, 2, 0), answer(2, 1, 1, 0))
	refresh("12")
	write(false, answer(3, 0, 1.5, 0))
	write(true, label(1))
	refresh("32")
	if seen == 0 {
		t.Error("nobody is told of a label")
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), nats.JournalStream); err != nil {
		t.Fatal(err)
	}
	write(false, answer(4, 3, .5, 0))
	refresh("324")

	// Just now it was read: it is not read again.
	write(false, answer(5, 0, 3, 0))
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Item(id(5)); ok {
		t.Error("it was read again at once")
	}
	refresh("5324")
	conn.Close()
	r.next = time.Time{}
	if err := r.Refresh(t.Context()); err == nil {
		t.Error("no error without a server")
	}
}
