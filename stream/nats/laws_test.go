package nats_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/alerttest"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
	"hamlet/stream/questions/questionstest"
)

var models atomic.Int64

// The publisher of alerts obeys the laws of all notices: on a server in this process
// and, if the environment variable HAMLET_NATS names one, on a real one, as the user of
// HAMLET_NATS_USER and HAMLET_NATS_PASSWORD. There each law uses its own model, because
// the stream has other alerts too.
func TestAlertsLaws(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		alerttest.Run(t, func(t *testing.T) alerttest.Subject {
			return subject(t, connect(t, startJetStream(t, t.TempDir(), -1, nil)))
		})
	})
	if url := os.Getenv("HAMLET_NATS"); url != "" {
		t.Run("real", func(t *testing.T) {
			alerttest.Run(t, func(t *testing.T) alerttest.Subject {
				conn, err := nats.Connect(nats.Config{URL: url, User: os.Getenv("HAMLET_NATS_USER"), Password: os.Getenv("HAMLET_NATS_PASSWORD")})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(conn.Close)
				return subject(t, conn)
			})
		})
	}
}

func subject(t *testing.T, conn *natsgo.Conn) alerttest.Subject {
	model := fmt.Sprintf("law-%d-%d", time.Now().UnixNano(), models.Add(1))
	publisher := alerts(t, conn)
	if err := publisher.Prepare(patience(t)); err != nil {
		t.Fatal(err)
	}
	return alerttest.Subject{AlertPublisher: publisher, Model: model, Published: func() []stream.Alert { return published(t, conn, model) }}
}

// published returns the alerts of one model, in the stream's order.
func published(t *testing.T, conn *natsgo.Conn, model string) (alerts []stream.Alert) {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reader, err := js.OrderedConsumer(ctx, nats.AlertStream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{nats.IncidentSubject(model)},
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := reader.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range info.NumPending {
		m, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		a, err := stream.DecodeAlert(m.Data())
		if err != nil {
			t.Fatalf("%s: %v", m.Data(), err)
		}
		alerts = append(alerts, a)
	}
	return alerts
}

// The service and its client obey the laws of all ways of questions, each law under a model of
// its own.
func TestQuestionsLaws(t *testing.T) {
	server := startServer(t)
	questionstest.Run(t, func(t *testing.T) questionstest.Subject {
		model := fmt.Sprintf("law-%d", models.Add(1))
		return questionstest.Subject{
			Serving: func(t *testing.T) questions.Questions {
				s, err := nats.NewService(connect(t, server), nats.ServiceConfig{Model: model, Timeout: time.Minute, Concurrency: 2})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Asker: client(t, connect(t, server), model),
		}
	})
}
