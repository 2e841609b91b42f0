package ingest

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
		{"--replication=-2", "--replication: -2 is neither"},
		{"--retention=1s", "--retention: 1s is below"},
		{"--rate=-1", "--rate: -1 is neither"},
		{"--rate=NaN", "--rate: NaN is neither"},
		{"--rate=Inf", "--rate: +Inf is neither"},
		{"--rate=1e-320", "--rate: 1e-320 is neither"},
		{"--in-flight=0", "--in-flight: 0 is not in"},
		{"--in-flight=4611686018427387904", "--in-flight: 4611686018427387904 is not in"},
		{"--deadline=0s", "--deadline: 0s is not above zero"},
		{"--deadline=1h", "--deadline: 1h0m0s is not above zero, up to"},
		{"--limit=-1", "--limit -1"},
	} {
		args := []string{"--kafka=127.0.0.1:1", "--format=text", "-", c.args}
		err := Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.args, err, c.want)
		}
	}
}

// What --from-topic does not go with is wrong usage.
func TestUsageOfFromTopic(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "--source NAME"},
		{"--source=a --source=b", "--source NAME"},
		{"--source=a=.5", "--source NAME"},
		{"--source=a messages.txt", "in place of a file"},
		{"--source=a --spam=Junk", "in place of a file"},
		{"--source=a --http=127.0.0.1:0 --token=x", "another ingest"},
		{"--source=a --rate=5", "leave --rate"},
		{"--source=a --no-resume", "leave --rate"},
		{"--source=a --retention=1s", "--retention: 1s is below"},
	} {
		args := append([]string{"--kafka=127.0.0.1:1", "--from-topic=feed"}, strings.Fields(c.args)...)
		err := Run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.args, err, c.want)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	clitest.Help(t, Run, []string{"--in-flight=16", "--deadline=10s", "--rate=0"}, "--help")
	clitest.Manual(t, Run, "")
	clitest.Version(t, Run, "ingest")
}
