package embedded

import (
	"errors"
	"net"
	"os"
	"path/filepath"
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
