package parts

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/servertest"
)

// Where no alert is published the learner says why, and what to do about it.
func TestAlertsAreNotPublished(t *testing.T) {
	plain, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	plain.Start()
	defer func() { plain.Shutdown(); plain.WaitForShutdown() }()
	if !plain.ReadyForConnections(30 * time.Second) {
		t.Fatal("the nats server doesn't listen")
	}
	for _, c := range []struct {
		name    string
		url     string
		publish bool
		want    string // in the log, or in the error
		not     string
	}{
		{"no server is named", "", true, "level=WARN msg=\"alerts are logged and counted, not published: name a NATS server with --nats for that\"", "--no-publish-alerts"},
		{"none is wanted", plain.ClientURL(), false, "level=INFO msg=\"alerts are logged and counted, not published", "--nats "},
		{"none is wanted, no server is named", "", false, "level=INFO msg=\"alerts are logged and counted, not published", "--nats "},
		{"the server has no JetStream", plain.ClientURL(), true, "; --no-publish-alerts goes without", "not published"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log servertest.Buffer // the connection's goroutines write it too
			s := New("test", "default", slog.New(slog.NewTextHandler(&log, nil)))
			defer s.Close()
			s.NATS = settings.NATS{NATS: c.url}
			alerts, err := s.OpenAlerts(t.Context(), settings.Alerts{PublishAlerts: c.publish, AlertReplicas: 1})
			said := log.String()
			if err != nil {
				said += err.Error()
			}
			if alerts != nil {
				t.Error("they are published")
			}
			if !strings.Contains(said, c.want) || strings.Contains(said, c.not) {
				t.Errorf("it says\n%s\nwant %q, and not %q", said, c.want, c.not)
			}
		})
	}
}

// The NATS of this process that finds no room for JetStream keeps no learner from starting. Alerts are
// published once there is room.
func TestAlertsWaitForRoom(t *testing.T) {
	dir := t.TempDir()
	room := filepath.Join(dir, ".room")
	if err := os.Symlink("/dev/full", room); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(room); err != nil {
		t.Skip("this system has no /dev/full")
	}
	n, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var log servertest.Buffer
	s := New("test", "default", slog.New(slog.NewTextHandler(&log, nil)))
	defer s.Close()
	s.NATS = settings.NATS{NATS: n.URL(), InProcess: n}
	alerts, err := s.OpenAlerts(t.Context(), settings.Alerts{PublishAlerts: true, AlertReplicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "alerts wait for JetStream") {
		t.Errorf("it says\n%s", log.String())
	}
	if err := os.Remove(room); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = alerts.Publish(ctx, stream.Alert{
		Incident: 1, Transition: 1, Model: "default", Kind: stream.AlertConcept, State: stream.AlertRaised, Event: 1,
		Body: stream.AlertText,
	})
	if err != nil {
		t.Error(err)
	}
}
