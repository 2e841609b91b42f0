package score_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/score"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/servertest/loopback"
)

// A starting scorer has no model until loaded is set.
type starting struct{ loaded atomic.Bool }

func (s *starting) Score(ctx context.Context, requests []*stream.Event, explain bool) ([]stream.Verdict, error) {
	return wordy{down: !s.loaded.Load()}.Score(ctx, requests, explain)
}

func (*starting) Info(context.Context) (stream.Info, error) { return stream.Info{}, nil }

// lines hands on what is written, a line a Write.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// Server, scorer and model may come after the question. The question says what it
// waits for.
func TestWaitsForAll(t *testing.T) {
	t.Parallel()
	addr := loopback.Hold(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	command := score.Command{
		Files: []string{write(t, filepath.Join(t.TempDir(), "m.eml"), letter("prize"))}, Format: "mail",
		ModelName: settings.ModelName{Model: "default"}, Server: "nats://" + addr, Timeout: time.Minute,
	}
	var out bytes.Buffer
	said := make(lines, 100)
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := command.Run(t.Context(), cli.IO{In: strings.NewReader(""), Out: &out, Err: said}); err != nil {
			t.Error(err)
		}
	})
	until := func(what string) {
		t.Helper()
		select {
		case line := <-said:
			if !strings.HasPrefix(line, "waiting until ") || !strings.Contains(line, " for "+what) {
				t.Errorf("said %q, want that it waits for %s", line, what)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("does not say that it waits for %s", what)
		}
	}
	until("a NATS server")
	url := listen(t, number)
	until("a scorer")
	s := new(starting)
	serve(t, url, s)
	until("the scorer, which says: no model yet")
	s.loaded.Store(true)
	asking.Wait()
	if !strings.HasPrefix(out.String(), "spam ") {
		t.Errorf("printed %q", out.String())
	}
}

// A server goes away with the question. The next server's scorer is asked again at once, and
// not when the time is up.
func TestAsksAgainWhereTheServerWasLost(t *testing.T) {
	t.Parallel()
	addr := loopback.Hold(t)
	first, err := embedded.StartNATS(embedded.NATSOptions{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := natsgo.Connect(first.URL(), natsgo.Timeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 10)
	if _, err := conn.Subscribe("hamlet.explain", func(*natsgo.Msg) { asked <- struct{}{} }); err != nil { // it never answers
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	command := score.Command{
		Files: []string{write(t, filepath.Join(t.TempDir(), "m.eml"), letter("prize"))}, Format: "mail",
		ModelName: settings.ModelName{Model: "default"}, Server: first.URL(), Timeout: 10 * time.Minute,
	}
	var out bytes.Buffer
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := command.Run(t.Context(), cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
			t.Error(err)
		}
	})
	<-asked
	conn.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := embedded.StartNATS(embedded.NATSOptions{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	s := new(starting)
	s.loaded.Store(true)
	serve(t, second.URL(), s)
	asking.Wait()
	if !strings.HasPrefix(out.String(), "spam ") {
		t.Errorf("printed %q", out.String())
	}
}
