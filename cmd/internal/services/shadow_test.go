package services

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"hamlet/cmd/internal/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// A shadow has the layout of the first model, and names what is missing until that is known. It
// makes no topic.
func TestShadowOrder(t *testing.T) {
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
	s := New("test", "cand", slog.New(slog.DiscardHandler))
	defer s.Close()
	s.EventsOf, s.Shadow = "first", true
	reach := settings.Redis{Redis: r.Addr()}
	cfg, _, err := s.OpenKafka(t.Context(), settings.Kafka{Kafka: []string{k.Addr()}}, settings.Topic{Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := func(missing string) {
		t.Helper()
		if o, got, err := s.firstOrder(t.Context(), reach, cfg); got != missing || o != nil || err != nil {
			t.Errorf("missing is %q, want %q; %+v, %v", got, missing, o, err)
		}
	}
	want("the topic hamlet.events.first")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.OpenOrder(ended, settings.Learner{}, settings.Topic{}, reach, nil, cfg, nil); err == nil {
		t.Error("a shadow that waits does not end")
	}
	if err := kafka.EnsureTopic(t.Context(), cfg, s.Topic(), 2, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	want("a saved version of model first")

	first := New("test", "first", slog.New(slog.DiscardHandler))
	defer first.Close()
	store, err := first.OpenRedis(t.Context(), reach, settings.Versions{KeepVersions: 2})
	if err != nil {
		t.Fatal(err)
	}
	save := func(next int64, place []byte) {
		t.Helper()
		epoch, err := store.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Save(t.Context(), &state.Checkpoint{Epoch: epoch, Model: []byte("m"), Config: []byte("{}"), Order: place, Position: state.Position{Next: next}}); err != nil {
			t.Fatal(err)
		}
	}
	save(1, nil)
	want("") // each partition has a model of its own
	save(2, []byte("order"))
	want("the topic hamlet.order.first")
	if err := kafka.EnsureOrder(t.Context(), cfg, "first", s.Topic(), 1); err != nil {
		t.Fatal(err)
	}
	o, err := s.OpenOrder(t.Context(), settings.Learner{}, settings.Topic{}, reach, nil, cfg, nil)
	if err != nil || o == nil || o.Topic != order.Topic("first") || o.Append != nil || LearnerGroup("cand", o) != "hamlet.learner.cand.order" {
		t.Errorf("%+v, %v", o, err)
	}
	if learning := s.LearnerConfig(settings.Learner{}, cfg, "g"); learning.Shadow == nil || learning.Shadow.Of != "first" || learning.Consumer.Topic != stream.EventsTopic("first") {
		t.Errorf("%+v", learning)
	}

	own, err := s.OpenRedis(t.Context(), reach, settings.Versions{})
	if err != nil {
		t.Fatal(err)
	}
	asks, err := s.Promotion(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Promote(t.Context(), state.Promotion{Model: "cand"}); err != nil {
		t.Fatal(err)
	}
	if p, err := asks(t.Context()); err != nil || p.Model != "cand" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, c := range []struct{ shadow, want bool }{{true, false}, {false, true}} {
		s.Shadow = c.shadow
		if err := s.FindHeir(t.Context(), own); err != nil || s.Heir != c.want {
			t.Errorf("shadow %v: heir %v, %v", c.shadow, s.Heir, err)
		}
	}
	if err := store.Promote(t.Context(), state.Promotion{Model: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := s.FindHeir(t.Context(), own); err != nil || s.Heir {
		t.Errorf("after the way back: heir %v, %v", s.Heir, err)
	}
	for _, topic := range []string{stream.DeadLetterTopic, stream.ReceiptTopic} {
		if n, err := kafka.Partitions(t.Context(), cfg, topic); err != nil || n != 0 {
			t.Errorf("a shadow made the topic %s: %d, %v", topic, n, err)
		}
	}
}
