package parts

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// A shadow makes no topic: it waits for that of the first model, and ends when it is asked to.
func TestAShadowWaitsForTheTopic(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s := New("test", "cand", slog.New(slog.DiscardHandler))
	defer s.Close()
	s.EventsOf, s.Shadow = "first", true
	err = s.OpenKafka(t.Context(), settings.Kafka{Kafka: []string{k.Addr()}}, settings.Topic{Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.awaitTopic(ended); err == nil || !strings.Contains(err.Error(), "hamlet.events.first") {
		t.Errorf("a shadow that waits does not end, or does not say for what: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- s.awaitTopic(t.Context()) }()
	if err := s.Logs.(kafka.Config).Ensure(t.Context(), s.Topic(), 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}
