package scorer

import (
	"io"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/testkit/clitest"
)

// A number outside its range is wrong usage, said before anything is asked for.
func TestNumbersOutsideTheirRange(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--poll-interval=0s", "--poll-interval: 0s is below"},
		{"--poll-interval=-1s", "--poll-interval: -1s is below"},
		{"--concurrency=-1", "--concurrency: -1 is not in"},
		{"--concurrency=4611686018427387904", "--concurrency: 4611686018427387904 is not in"},
		{"--queue=-1", "--queue: -1 is not in"},
		{"--queue=4611686018427387904", "--queue: 4611686018427387904 is not in"},
		{"--redis-db=-1", "--redis-db: -1 is below zero"},
		{"--spam-at=NaN", "--ham-at and --spam-at"},
	} {
		args := []string{"--nats=nats://127.0.0.1:1", "--redis=127.0.0.1:1", c.args}
		err := Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.args, err, c.want)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	clitest.Help(t, Run, []string{"--queue=0", "--spam-at=0.9", "--ham-at=0.5", "--poll-interval=250ms"}, "--help")
	clitest.Manual(t, Run, "")
	clitest.Version(t, Run, "scorer")
}
