package embedded

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/nats"
)

// A server in this process takes a connection without TCP. It asks for the password as on
// any other connection.
func TestInProcessAsksForThePassword(t *testing.T) {
	n := startTestNATS(t, NATSOptions{Users: []NATSUser{{Name: "hamlet", Password: "right"}}})
	_, err := nats.Connect(nats.Config{URL: n.URL(), InProcess: n, User: "hamlet", Password: "wrong"})
	if err == nil || !strings.Contains(err.Error(), "check the user name") {
		t.Errorf("with a wrong password: %v", err)
	}
	if _, err := nats.Connect(nats.Config{URL: n.URL(), InProcess: n}); err == nil {
		t.Error("without a password it connects")
	}
	nc, err := nats.Connect(nats.Config{URL: n.URL(), InProcess: n, User: "hamlet", Password: "right", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Subscribe("ask", func(m *natsgo.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	if m, err := nc.Request("ask", []byte(large), 30*time.Second); err != nil || string(m.Data) != large {
		t.Errorf("a message of 1 MiB: %v", err)
	}
}

// A lost connection within the process comes back: also from a server that started again.
func TestInProcessReconnects(t *testing.T) {
	dir := t.TempDir()
	var current atomic.Pointer[NATS]
	start := func() *NATS {
		n, err := StartNATS(NATSOptions{Dir: dir, Users: []NATSUser{{Name: "hamlet", Password: "right"}}})
		if err != nil {
			t.Fatal(err)
		}
		current.Store(n)
		return n
	}
	first := start()
	nc, err := nats.Connect(nats.Config{InProcess: latest{&current}, User: "hamlet", Password: "right", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	lost, again := nc.StatusChanged(natsgo.RECONNECTING), nc.StatusChanged(natsgo.CONNECTED)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, lost)
	second := start()
	defer second.Close()
	await(t, again)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func await(t *testing.T, status <-chan natsgo.Status) {
	t.Helper()
	select {
	case <-status:
	case <-time.After(30 * time.Second):
		t.Fatal("the connection's status does not change")
	}
}

// latest is the server that was started last.
type latest struct{ *atomic.Pointer[NATS] }

func (l latest) InProcessConn() (net.Conn, error) { return l.Load().InProcessConn() }

// TLS works within the process, where a server has it.
func TestInProcessSpeaksTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true, Username: "hamlet", Password: "right",
		TLSConfig: web.TLS, TLSTimeout: 30})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	client := web.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	nc, err := nats.Connect(nats.Config{InProcess: s, User: "hamlet", Password: "right", TLS: client, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("TLS: %v, %v", state, err)
	}
}
