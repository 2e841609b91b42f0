package settings

import (
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
		err := Topic{Partitions: 1, Replication: -1, Retention: c.retention}.Check()
		if wrong := cli.Status(err) == cli.StatusUsage; wrong != c.wrong || !wrong && err != nil {
			t.Errorf("%v: %v, want wrong usage %t", c.retention, err, c.wrong)
		}
	}
}
