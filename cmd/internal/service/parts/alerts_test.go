package parts

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hamlet/cmd/internal/service/settings"
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
