package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/program/learner"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
)

// learner --models one makes the model that eval --kafka-order finds in the cluster.
func TestEvalReplaysOneModelOfSeveralPartitions(t *testing.T) {
	const n, patience = 200, 2 * time.Minute
	k, err := embedded.StartKafka(embedded.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r, err := embedded.StartRedis(embedded.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	if err := kafka.EnsureTopic(t.Context(), cfg, stream.EventsTopic("m"), 3, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	producer, err := kafka.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range n {
		e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: fmt.Sprint("lunch ", i%7)}}
		if i%3 == 0 {
			e.Label, e.Body.Text = stream.Spam, fmt.Sprint("prize ", i%5)
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			t.Fatal(err)
		}
		if err := producer.Publish(t.Context(), kafka.Record{Topic: stream.EventsTopic("m"), Key: fmt.Append(nil, i), Value: value, Headers: headers}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- learner.Run(ctx, []string{"--kafka", k.Addr(), "--redis", r.Addr(), "--model", "m", "--models", "one", "--table-bits", "14",
			"--save-every", "50ms", "--session-timeout", "60s"}, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	}()
	store, err := redis.New(redis.Config{Addr: r.Addr(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var head *state.Checkpoint
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for ; head == nil || head.Events < n; <-poll.C {
		if len(ended) > 0 {
			t.Fatalf("the learner ended: %v", <-ended)
		}
		head, _, _ = store.Load(t.Context(), 0, state.Head) // none at first
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"eval", "--kafka-order", k.Addr(), "--kafka-model", "m", "--table-bits", "14", "--json"}
	if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	var result struct {
		Model string `json:"model_sha256"`
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Model != fmt.Sprintf("%x", head.ModelSHA256()) {
		t.Errorf("eval prints %s, the learner saved %x: %v", &out, head.ModelSHA256(), err)
	}
}
