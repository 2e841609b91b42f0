package program

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"hamlet/cmd/internal/service/parts"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
)

// Ingest is ready when Kafka has its topic, not as soon as it listens.
func TestReadyzAsksKafka(t *testing.T) {
	topic := stream.EventsTopic("default")
	k, err := servertest.StartKafka(servertest.KafkaOptions{Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	events, err := kafka.NewLog(kafka.Config{Brokers: []string{k.Addr()}}, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	readyz := func() int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		f := ingestFlags{HTTP: "127.0.0.1:0"}
		log := slog.New(slog.DiscardHandler)
		s := parts.New("test", "default", log)
		h := f.http(newIngestMetrics(s.Registry), nil, events, log)
		server, err := s.Listen(h)
		if err != nil {
			t.Fatal(err)
		}
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- server.Run(serving) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server.Addr()+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	// Each call starts a new server. A slow machine may take longer than a probe waits.
	got := readyz()
	for until := time.Now().Add(30 * time.Second); got != http.StatusOK && time.Now().Before(until); {
		got = readyz()
	}
	if got != http.StatusOK {
		t.Errorf("with Kafka: %d, want 200", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if got = readyz(); got != http.StatusServiceUnavailable {
		t.Errorf("without Kafka: %d, want 503", got)
	}
}
