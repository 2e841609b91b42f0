package main

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/settings"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
)

// Synthetic mail that nobody asked for goes on where it was, unless there is
// anything else in the topic by then.
func TestDemonstrationEndsWhereOtherEventsAre(t *testing.T) {
	topic := stream.EventsTopic("default")
	k, err := embedded.StartKafka(embedded.KafkaOptions{Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	producer, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	demonstrated := func() bool {
		t.Helper()
		c := &upCommand{ModelFlag: settings.ModelFlag{Model: "default"}}
		src, err := c.source(nil)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if err := c.demonstrate(t.Context(), src, cfg, true, slog.New(slog.DiscardHandler), &said); err != nil {
			t.Fatal(err)
		}
		if (src.open == nil) != (said.Len() > 0) {
			t.Errorf("it says %q", said.String())
		}
		return src.open != nil
	}
	if !demonstrated() {
		t.Error("nothing is streamed into an empty topic")
	}
	first := &upCommand{ModelFlag: settings.ModelFlag{Model: "default"}}
	first.Limit = 30
	src, err := first.source(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Source(t.Context(), ingest.Config{Publisher: producer, Topic: topic, Log: slog.New(slog.DiscardHandler)}, src.open); err != nil {
		t.Fatal(err)
	}
	if !demonstrated() {
		t.Error("synthetic mail does not go on")
	}
	e := stream.Event{ID: "a1", Time: time.Unix(1, 0), Source: "desk", Tenant: stream.DefaultName, Label: stream.Spam,
		Body: stream.Body{Kind: stream.Text, Text: "You won"}}
	record, err := ingest.Record(&e, topic)
	if err != nil {
		t.Fatal(err)
	}
	if err := producer.Publish(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if demonstrated() {
		t.Error("synthetic mail goes on behind an event of somebody's")
	}
}
