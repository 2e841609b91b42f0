package learner

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
		{"--replication=0", "--replication: 0 is neither"},
		{"--replication=40000", "--replication: 40000"},
		{"--retention=1ns", "--retention: 1ns is below"},
		{"--keep-versions=0", "--keep-versions: 0 is not in"},
		{"--keep-daily=-1", "--keep-daily: -1 is not in"},
		{"--redis-db=-1", "--redis-db: -1 is below zero"},
		{"--alert-replicas=6", "--alert-replicas: 6 is not in"},
		{"--save-every=0s", "--save-every: 0s is not above zero"},
		{"--answered=-1", "--answered: -1 is"},
		{"--events-of=A", `--events-of: "A" is not the name`},
		{"--shadow", "--shadow: name the model beside which it learns"},
		{"--shadow --events-of=default", "cannot be its own shadow"},
		{"--without-source=", "without_sources"},
		{"--table-bits=60", "table_bits: 60 is not in"},
	} {
		args := append([]string{"--kafka=127.0.0.1:1", "--redis=127.0.0.1:1"}, strings.Fields(c.args)...)
		err := Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.args, err, c.want)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	clitest.Help(t, Run, []string{"--save-every=3s", "--table-bits=18"}, "--help")
	clitest.Manual(t, Run, "")
	clitest.Version(t, Run, "learner")
}
