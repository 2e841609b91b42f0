package settings

import (
	"io"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/cli"
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

// The flags of several partitions are refused wherever they stand, but for the one partition
// that the files of 0.1.0 name.
func TestGoneTopicFlags(t *testing.T) {
	topic := func(args ...string) error {
		var f struct {
			Topic
			cli.ProgramFlags
		}
		_, err := Parse("learner", "x", &f, args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		return err
	}
	const want = "--partitions is not a flag any more: a model has one log of one partition"
	for _, arg := range []string{"--partitions=3", "--partitions=0", "--partitions=", write(t, "partitions: 3\n"), write(t, "learner: {partitions: 3}\n")} {
		if err := topic(arg); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want wrong usage with %q", arg, err, want)
		}
	}
	for _, arg := range []string{"--partitions=1", write(t, "partitions: 1\n"), write(t, "learner: {partitions: 1}\n"), write(t, "ingest: {partitions: 3}\n")} {
		if err := topic(arg); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
	}
	t.Setenv("HAMLET_PARTITIONS", "3")
	if err := topic(); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
		t.Errorf("the variable: %v, want wrong usage with %q", err, want)
	}
}
