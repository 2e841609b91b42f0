package settings

import (
	"errors"
	"io"
	"os"
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

// What kafka.EnsureTopic takes for the brokers' default and for ever, the flags
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

// The flags of several partitions, and of the consumer group of learners, are refused wherever
// they stand, but for the one partition that the files of 0.1.0 name.
func TestGoneFlagsOfTopicAndLearner(t *testing.T) {
	parse := func(args ...string) error {
		var f struct {
			Topic
			Learner
			cli.ProgramFlags
		}
		_, err := Parse("learner", "x", &f, args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		return err
	}
	for flag, value := range map[string]string{"partitions": "3", "models": "one", "group": "g", "session-timeout": "3s"} {
		want := "--" + flag + " is not a flag any more: "
		for _, arg := range []string{"--" + flag + "=" + value, "--" + flag + "=", write(t, "learner: {"+flag+": "+value+"}\n")} {
			if err := parse(arg); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want wrong usage with %q", arg, err, want)
			}
		}
		variable := "HAMLET_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		t.Setenv(variable, value)
		if err := parse(); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want wrong usage with %q", variable, err, want)
		}
		if err := os.Unsetenv(variable); err != nil {
			t.Fatal(err)
		}
	}
	for _, arg := range []string{"--partitions=1", write(t, "partitions: 1\n"), write(t, "learner: {partitions: 1}\n"), write(t, "ingest: {partitions: 3}\n")} {
		if err := parse(arg); err != nil {
			t.Errorf("%s: %v", arg, err)
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
	if n, err := kafka.Partitions(t.Context(), cfg, stream.EventsTopic("one")); err != nil || n != 1 {
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
