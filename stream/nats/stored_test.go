package nats_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// A read whose server stops in the middle, and comes back without the stream, ends with an
// error. It does not try for ever.
func TestReadingEndsWithTheStream(t *testing.T) {
	t.Parallel()
	port := heldPort(t)
	s := startJetStream(t, t.TempDir(), port, nil)
	conn := connect(t, s)
	ctx := patience(t)
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if err := journal(t, conn, nats.JournalConfig{}).Append(ctx, "first", []stream.JournalEntry{entry("first")}); err != nil {
		t.Fatal(err)
	}
	const more = 700 // than are asked for at once
	for i := range more {
		if _, err := js.PublishAsync(nats.JournalSubject("default"), fmt.Appendf(nil, "line %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		t.Fatal("the lines are not stored")
	}
	began, changed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		n, last := 0, error(nil)
		for _, err := range nats.ReadJournal(ctx, conn, "default", time.Time{}) {
			if n++; n == 1 {
				close(began)
				<-changed
			}
			last = err
		}
		if n > more {
			last = nil
		}
		ended <- last
	}()
	select {
	case <-began:
	case <-ctx.Done():
		t.Fatal("no line is read")
	}
	s.Shutdown()
	s.WaitForShutdown()
	startJetStream(t, t.TempDir(), port, nil)
	close(changed)
	select {
	case err := <-ended:
		if lineError := new(nats.MessageError); err == nil || errors.As(err, &lineError) {
			t.Errorf("the read ended with %v", err)
		}
	case <-ctx.Done():
		t.Error("the read goes on")
	}
}
