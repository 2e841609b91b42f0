package embedded

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func startTestNATS(t *testing.T, opts NATSOptions) *NATS {
	t.Helper()
	n, err := StartNATS(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func dialNATS(t *testing.T, n *NATS) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(n.URL(), nats.Timeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestNATSAnswers(t *testing.T) {
	nc := dialNATS(t, startTestNATS(t, NATSOptions{}))
	if _, err := nc.Subscribe("ask", func(m *nats.Msg) {
		if err := m.Respond(m.Data); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	m, err := nc.Request("ask", []byte("what"), 30*time.Second)
	if err != nil || string(m.Data) != "what" {
		t.Errorf("reply %v, error %v; want what was asked", m, err)
	}
	if got := nc.MaxPayload(); got != 1<<20 {
		t.Errorf("largest message %d bytes, want 1 MiB", got)
	}
	if err := nc.Publish("ask", make([]byte, 1<<20+1)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("a message beyond 1 MiB: error %v, want ErrMaxPayload", err)
	}
}

// An acknowledged message survives a restart, and a copy of it is still a duplicate.
func TestNATSKeepsStreams(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	publish := func(n *NATS) *jetstream.PubAck {
		js, err := jetstream.New(dialNATS(t, n))
		if err != nil {
			t.Fatal(err)
		}
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: "ALERTS", Subjects: []string{"alerts.>"}, Duplicates: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(ctx, "alerts.noise", []byte("raised"), jetstream.WithMsgID("once"))
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	n := startTestNATS(t, NATSOptions{Dir: dir})
	if ack := publish(n); ack.Duplicate || ack.Sequence != 1 {
		t.Errorf("first publication: %+v", ack)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if ack := publish(startTestNATS(t, NATSOptions{Dir: dir})); !ack.Duplicate || ack.Sequence != 1 {
		t.Errorf("after a restart the same message id: %+v, want a duplicate of 1", ack)
	}
}

func TestNATSRemovesTemporaryDirectory(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	n := startTestNATS(t, NATSOptions{})
	if found, err := filepath.Glob(filepath.Join(temp, "hamlet-nats-*")); err != nil || len(found) != 1 {
		t.Fatalf("temporary directories %v, %v; want one", found, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNATSErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	startTestNATS(t, NATSOptions{Dir: dir})
	for name, test := range map[string]struct {
		opts NATSOptions
		say  []string
	}{
		"port taken":       {NATSOptions{Addr: taken.Addr().String()}, []string{taken.Addr().String(), "taken", "choose another port"}},
		"no port":          {NATSOptions{Addr: "localhost"}, []string{"localhost", "give host:port"}},
		"bad port":         {NATSOptions{Addr: "localhost:http"}, []string{"localhost:http", "not a number"}},
		"directory in use": {NATSOptions{Dir: dir}, []string{dir, "another hamlet uses it"}},
	} {
		n, err := StartNATS(test.opts)
		if err == nil {
			t.Errorf("%s: it started at %s", name, n.URL())
			continue
		}
		mustSay(t, err, test.say...)
	}
}

// mustSay fails the test if an error lacks one of the parts.
func mustSay(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// JetStream, which a full disk has ended, is started again, and has what it had.
func TestJetStreamComesBack(t *testing.T) {
	n := startTestNATS(t, NATSOptions{Dir: t.TempDir()})
	conn, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := n.server.ShutdownJetStream(); err != nil { // as nats-server does on ENOSPC
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		ack, err := js.Publish(ctx, "s", []byte("after"))
		cancel()
		if err == nil {
			if ack.Sequence < 2 {
				t.Errorf("what was there before is gone: the next one is %d", ack.Sequence)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// On a full disk the server starts and answers. JetStream follows once there is room.
func TestNATSStartsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	room := filepath.Join(dir, ".room")
	if err := os.Symlink("/dev/full", room); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(room); err != nil {
		t.Skip("this system has no /dev/full")
	}
	var said said
	n := startTestNATS(t, NATSOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if !strings.Contains(said.String(), "no space left on device") {
		t.Errorf("it says %q", said.String())
	}
	nc := dialNATS(t, n)
	if _, err := nc.Subscribe("ask", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request("ask", nil, 30*time.Second); err != nil {
		t.Error(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.startJetStream(); err == nil || !isFull(err) {
		t.Errorf("JetStream starts on a full disk: %v", err)
	}
	half := &NATS{server: n.server, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(half.dir, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := half.startJetStream(); err == nil { // a file is in the place of its folder
		t.Error("JetStream starts in a file")
	}
	if n.server.JetStreamEnabled() {
		t.Error("the server calls it enabled, and it would never be started again")
	}
	if err := os.Remove(room); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
		cancel()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), "s", []byte("after")); err != nil {
		t.Error(err)
	}
}

// said is what a logger has written. It may be used concurrently.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
