package settings

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest"
	"hamlet/stream/servertest/topics"
)

// What kafka.Config.Ensure takes for the brokers' default and for ever, the flags
// take too.
func TestRetention(t *testing.T) {
	for _, c := range []struct {
		retention time.Duration
		wrong     bool
	}{
		{-time.Millisecond, false}, // for ever
		{-time.Hour, false},
		{0, false}, // the brokers' default
		{time.Nanosecond, true},
		{minRetention - 1, true},
		{minRetention, false},
	} {
		err := Topic{Replication: -1, Retention: c.retention}.Check()
		if wrong := cli.Status(err) == cli.StatusUsage; wrong != c.wrong || !wrong && err != nil {
			t.Errorf("%v: %v, want wrong usage %t", c.retention, err, c.wrong)
		}
	}
}

// A topic of several partitions is refused, by everybody who would make it, with the ways out.
func TestTopicOfSeveralPartitionsIsRefused(t *testing.T) {
	k, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	cfg := kafka.Config{Brokers: []string{k.Addr()}}
	topic := Topic{Replication: 1, Retention: -1}
	for range 2 { // made, and found
		if err := topic.Ensure(t.Context(), cfg, "one"); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := cfg.Partitions(t.Context(), stream.EventsTopic("one")); err != nil || n != 1 {
		t.Errorf("a new topic has %d partitions, %v", n, err)
	}
	if err := CheckLog(t.Context(), cfg, "none"); err != nil {
		t.Errorf("no topic: %v", err)
	}
	topics.Make(t, cfg, stream.EventsTopic("news"), 4)
	for name, err := range map[string]error{"Ensure": topic.Ensure(t.Context(), cfg, "news"), "CheckLog": CheckLog(t.Context(), cfg, "news")} {
		if !errors.Is(err, kafka.ErrPartitions) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range []string{"this has 4", "hamlet.order.news", "hamlet order export FILE --model news",
			"hamlet log import FILE --model NEW", "hamlet log merge --from news --to NEW", "ingest --from-topic"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// A name passes every door or none: state and stream do not import each other, and have one form each.
func TestModelNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "spam-2": true, "-": true, strings.Repeat("z", 64): true,
		"": false, strings.Repeat("z", 65): false, "Spam": false, "a.b": false, "a_b": false, "ä": false, "a\n": false, "a@1": false,
	} {
		if state.IsModelName(name) != want || stream.IsModelName(name) != want || (ModelName{Model: name}.Validate() == nil) != want {
			t.Errorf("%q: state %v, stream %v, flag %v; want %v", name, state.IsModelName(name), stream.IsModelName(name), ModelName{Model: name}.Validate(), want)
		}
	}
}
