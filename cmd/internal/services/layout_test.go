package services

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/stream/embedded"
	"hamlet/stream/order"
)

// A new topic of several partitions has one model of all. What is saved stays as it is: a topic
// that gets more partitions keeps a model for each. --models wins over both.
func TestLayout(t *testing.T) {
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r, err := embedded.StartRedis(embedded.RedisOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var said bytes.Buffer
	// open returns what a learner of the model does; it saves a checkpoint with an order before
	// if saved says so.
	open := func(model, of, models string, partitions int, saved string) *learner.Order {
		t.Helper()
		said.Reset()
		s := New("test", model, slog.New(slog.NewTextHandler(&said, nil)))
		defer s.Close()
		s.EventsOf = of
		reach := settings.Redis{Redis: r.Addr()}
		topic := settings.Topic{Partitions: partitions, Replication: 1, Retention: -1}
		cfg, producer, err := s.OpenKafka(t.Context(), settings.Kafka{Kafka: []string{k.Addr()}}, topic)
		if err != nil {
			t.Fatal(err)
		}
		store, err := s.OpenRedis(t.Context(), reach, settings.Versions{KeepVersions: 1})
		if err != nil {
			t.Fatal(err)
		}
		if saved != "" {
			epoch, err := store.Take(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			c := state.Checkpoint{Epoch: epoch, Model: []byte("m"), Config: []byte("{}")}
			if saved == settings.OneModel {
				c.Order = []byte("order")
			}
			if _, err := store.Save(t.Context(), 0, &c); err != nil {
				t.Fatal(err)
			}
		}
		o, err := s.OpenOrder(t.Context(), settings.Learner{Models: models}, topic, reach, store, cfg, producer)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range []struct {
		model, of, models string
		partitions        int
		saved             string
		topic             string // of the order log; "": there is none
		says              string
	}{
		{model: "alone", partitions: 1},
		{model: "several", partitions: 2, topic: "several"},
		{model: "grown", partitions: 2, saved: settings.ModelEach, says: "--model NAME --events-of grown --models one"},
		{model: "one", partitions: 2, saved: settings.OneModel, topic: "one"},
		{model: "asked", partitions: 1, models: settings.OneModel, topic: "asked"},
		{model: "each", partitions: 3, models: settings.ModelEach},
		{model: "clean", of: "one", topic: "one"},
		{model: "clean", of: "grown", says: "--events-of grown --models one"},
		{model: "clean", of: "grown", models: settings.OneModel, topic: "grown"},
	} {
		o := open(c.model, c.of, c.models, c.partitions, c.saved)
		if got := c.topic != ""; got != (o != nil) || o != nil && (o.Topic != order.Topic(c.topic) || o.Writer == "") {
			t.Errorf("%+v: %+v", c, o)
		}
		if text := said.String(); c.says == "" && strings.Contains(text, "--models") || !strings.Contains(text, c.says) {
			t.Errorf("%+v: the log says %q", c, text)
		}
		want := "hamlet.learner." + c.model
		if o != nil {
			want += ".order"
		}
		if got := LearnerGroup(c.model, o); got != want {
			t.Errorf("%+v: group %s", c, got)
		}
	}
}
