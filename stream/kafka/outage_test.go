package kafka

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// An outage ends with ErrOutage once nothing has succeeded for MaxOutage. It says from
// time to time what it waits for and until when, and a success begins it anew.
func TestOutageHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		cfg := Config{Brokers: []string{"kafka:9092"}, MaxOutage: time.Minute, Seen: new(SeenTopics), Log: slog.New(slog.NewTextHandler(&log, nil))}
		client := cfg.client("t")
		defer closeIdle(client)
		var o outage
		fail := func() error {
			_, final := o.failed(t.Context(), &cfg, client, kafkago.RequestTimedOut, "kafka: trying again", "doing", "a test")
			return final
		}
		for range 2 {
			log.Reset()
			began := time.Now()
			for time.Since(began) <= time.Minute {
				if err := fail(); err != nil {
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
				<-time.After(time.Second)
			}
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if len(lines) < 5 || len(lines) > 7 || !strings.Contains(lines[0], "until="+began.Add(time.Minute).Format(time.RFC3339)) ||
				!strings.Contains(lines[0], `doing="a test"`) || !strings.Contains(lines[0], "Request Timed Out") {
				t.Errorf("logged %d lines in a minute: %q", len(lines), lines)
			}
			o.over(&cfg)
			if !strings.Contains(log.String(), "answers again") {
				t.Errorf("the end of the outage is not logged: %q", log.String())
			}
		}
		if err := fail(); err != nil {
			t.Fatalf("after a success: %v", err)
		}
		<-time.After(time.Minute + 1)
		if err := fail(); !errors.Is(err, ErrOutage) || !errors.Is(err, kafkago.RequestTimedOut) || !strings.Contains(err.Error(), "kafka:9092") {
			t.Errorf("after MaxOutage: %v", err)
		}
		o.reset()
		cfg.MaxOutage = 0
		for range 3 {
			if err := fail(); err != nil {
				t.Errorf("without a limit: %v", err)
			}
			<-time.After(24 * time.Hour)
		}
	})
}
