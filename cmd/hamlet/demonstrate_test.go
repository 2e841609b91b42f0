package main

import (
	"bytes"
	"fmt"
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
	for _, partitions := range []int{1, 2} {
		t.Run(fmt.Sprintf("partitions=%d", partitions), func(t *testing.T) { demonstrateBesideOthers(t, partitions) })
	}
}

func demonstrateBesideOthers(t *testing.T, partitions int) {
	topic := stream.EventsTopic("default")
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	if err := kafka.EnsureTopic(t.Context(), cfg, topic, partitions, 1, -1); err != nil {
		t.Fatal(err)
	}
	producer, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	quiet := slog.New(slog.DiscardHandler)
	command := func() (*upCommand, *labelled) {
		t.Helper()
		c := &upCommand{ModelName: settings.ModelName{Model: "default"}}
		c.Limit = 700 // more than a chunk: a part of the last one is sent again to several partitions
		src, err := c.source(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, src
	}
	demonstrated := func() bool {
		t.Helper()
		c, src := command()
		var said bytes.Buffer
		if err := c.demonstrate(t.Context(), src, cfg, true, quiet, &said); err != nil {
			t.Fatal(err)
		}
		if (src.open == nil) != (said.Len() > 0) {
			t.Errorf("it says %q", said.String())
		}
		return src.open != nil
	}
	send := func() {
		t.Helper()
		end, err := ingest.FindEnd(t.Context(), cfg, topic, quiet)
		if err != nil {
			t.Fatal(err)
		}
		_, src := command()
		if _, err := ingest.Source(t.Context(), ingest.Config{Publisher: producer, Topic: topic, Resume: end, Log: quiet}, src.open); err != nil {
			t.Fatal(err)
		}
	}
	if !demonstrated() {
		t.Error("nothing is streamed into an empty topic")
	}
	for start := range 3 {
		send()
		if !demonstrated() {
			t.Errorf("synthetic mail does not go on after start %d", start)
		}
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
	send()
	if demonstrated() {
		t.Error("synthetic mail goes on with an event of somebody's among it")
	}
}
