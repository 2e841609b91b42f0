package parts

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// What was opened last is closed first, once.
func TestCloseInReverse(t *testing.T) {
	s := New("test", "default", slog.New(slog.DiscardHandler))
	var closed []int
	for i := range 3 {
		s.OnClose(func() { closed = append(closed, i) })
	}
	s.Close()
	s.Close()
	if !slices.Equal(closed, []int{2, 1, 0}) {
		t.Errorf("closed in order %v", closed)
	}
}

// Without HTTP a set runs as long as the work; with it until ctx ends, and an error
// of the work ends both.
func TestRun(t *testing.T) {
	s := New("test", "default", slog.New(slog.DiscardHandler))
	defer s.Close()
	if err := s.Run(t.Context(), HTTP{}, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := s.Run(t.Context(), HTTP{Addr: "127.0.0.1:0"}, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of the work", err)
	}
	server, err := s.Listen(HTTP{Addr: "127.0.0.1:0", Ready: func() error { return broken }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	response, err := http.Get("http://" + server.Addr() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusServiceUnavailable || string(body) != "broken\n" {
		t.Errorf("%s: %q", response.Status, body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// systemdHears returns what waits until systemd's end of the socket hears a text.
func systemdHears(t *testing.T) (await func(want string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	t.Setenv("NOTIFY_SOCKET", path)
	return func(want string) {
		t.Helper()
		for b := make([]byte, 4096); ; {
			size, err := conn.Read(b)
			if err != nil {
				t.Fatalf("no %s: %v", want, err)
			}
			if strings.Contains(string(b[:size]), want) {
				return
			}
		}
	}
}

// A systemd that has started the process hears that it serves, and the condition of /readyz.
func TestRunTellsSystemd(t *testing.T) {
	await := systemdHears(t)
	s := New("test", "default", slog.New(slog.DiscardHandler))
	defer s.Close()
	missing := make(chan error, 1)
	missing <- errors.New("no model yet")
	ready := func() error {
		select {
		case err := <-missing:
			return err
		default:
			return nil
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, HTTP{Addr: "127.0.0.1:0", Ready: ready}, nil) }()
	await("READY=1") // a boot waits for no model
	await("STATUS=not ready: no model yet")
	await("STATUS=ready")
	stop()
	await("STOPPING=1")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// systemd hears which server is away at the start. A boot does not wait for Kafka, which is
// awaited without an end.
func TestStartTellsSystemd(t *testing.T) {
	await := systemdHears(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it says nothing, as a server does that begins
	silent := l.Addr().String()
	s := New("test", "default", slog.New(slog.DiscardHandler))
	defer s.Close()
	s.notice.patience = time.Hour // the wait for NATS is a short one, however late this process is
	if _, err := s.OpenNATS(settings.NATS{NATS: "nats://127.0.0.1:1"}); err == nil {
		t.Error("NATS is away, and there is no error")
	}
	await("STATUS=waiting for NATS")
	await("STATUS=starting")
	s.notice.patience = time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := s.OpenKafka(ctx, settings.Kafka{Kafka: []string{silent}}, settings.Topic{Replication: 1, Retention: -1})
		ended <- err
	}()
	await("STATUS=waiting for Kafka")
	await("READY=1")
	await("STATUS=not ready: waiting for Kafka")
	stop()
	await("STOPPING=1")
	if err := <-ended; err == nil {
		t.Error("Kafka is away, and there is no error")
	}
}

// The connections that the services share open against real servers.
func TestOpen(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := New("test", "default", slog.New(slog.DiscardHandler))
	defer s.Close()
	topic := settings.Topic{Replication: 1, Retention: -1}
	err = s.OpenKafka(t.Context(), settings.Kafka{Kafka: []string{k.Addr()}}, topic)
	if cfg, ok := s.Logs.(kafka.Config); err != nil || !ok || cfg.ClientID != "test" {
		t.Errorf("Kafka: %+v, %v", cfg, err)
	}
	events, err := s.OpenLog(s.Topic())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Bounds(t.Context()); err != nil {
		t.Errorf("the events topic: %v", err)
	}
	err = s.OpenRedis(t.Context(), settings.Redis{Redis: r.Addr()}, settings.Versions{KeepVersions: 1})
	if err != nil || s.Store == nil {
		t.Errorf("Redis: %v", err)
	}
	if _, err := s.OpenNATS(settings.NATS{}); err == nil {
		t.Error("NATS without an address opens")
	}
}

// A certificate without an address would leave an operator with plain text unawares.
func TestCertificateWithoutAddress(t *testing.T) {
	s := New("test", "default", slog.New(slog.DiscardHandler))
	defer s.Close()
	for _, h := range []HTTP{{}, {Metrics: "127.0.0.1:0"}} {
		h.TLS.HTTPTLSCert = "cert.pem"
		if server, err := s.Listen(h); err == nil {
			server.Close()
			t.Errorf("%+v is taken", h)
		}
	}
}
