package program

import (
	"context"
	"io"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/testkit/clitest"
)

// A number outside its range is wrong usage, said before anything is asked for.
func TestNumbersOutsideTheirRange(t *testing.T) {
	for _, p := range []struct {
		name   string
		run    func(context.Context, []string, cli.IO) error
		args   string
		wrongs map[string]string
	}{
		{"ingest", Ingest, "--kafka=127.0.0.1:1 --format=text -", map[string]string{
			"--replication=-2":                "--replication: -2 is neither",
			"--retention=1s":                  "--retention: 1s is below",
			"--rate=-1":                       "--rate: -1 is neither",
			"--rate=NaN":                      "--rate: NaN is neither",
			"--rate=Inf":                      "--rate: +Inf is neither",
			"--rate=1e-320":                   "--rate: 1e-320 is neither",
			"--in-flight=0":                   "--in-flight: 0 is not in",
			"--in-flight=4611686018427387904": "--in-flight: 4611686018427387904 is not in",
			"--deadline=0s":                   "--deadline: 0s is not above zero",
			"--deadline=1h":                   "--deadline: 1h0m0s is not above zero, up to",
			"--limit=-1":                      "--limit -1",
			"--sampled=2":                     "--sampled 2: a share",
			"--ask=0.6":                       "--ask 0.6: a share",
			"--ask=NaN":                       "--ask NaN: a share",
		}},
		{"learner", Learner, "--kafka=127.0.0.1:1 --redis=127.0.0.1:1", map[string]string{
			"--replication=0":              "--replication: 0 is neither",
			"--replication=40000":          "--replication: 40000",
			"--retention=1ns":              "--retention: 1ns is below",
			"--keep-versions=0":            "--keep-versions: 0 is not in",
			"--keep-daily=-1":              "--keep-daily: -1 is not in",
			"--redis-db=-1":                "--redis-db: -1 is below zero",
			"--alert-replicas=6":           "--alert-replicas: 6 is not in",
			"--save-every=0s":              "--save-every: 0s is not above zero",
			"--answered=-1":                "--answered: -1 is",
			"--events-of=A":                `--events-of: "A" is not the name`,
			"--shadow":                     "--shadow: name the model beside which it learns",
			"--shadow --events-of=default": "cannot be its own shadow",
			"--without-source=":            "without_sources",
			"--table-bits=60":              "table_bits: 60 is not in",
		}},
		{"scorer", Scorer, "--nats=nats://127.0.0.1:1 --redis=127.0.0.1:1", map[string]string{
			"--poll-interval=0s":                "--poll-interval: 0s is below",
			"--poll-interval=-1s":               "--poll-interval: -1s is below",
			"--concurrency=-1":                  "--concurrency: -1 is not in",
			"--concurrency=4611686018427387904": "--concurrency: 4611686018427387904 is not in",
			"--queue=-1":                        "--queue: -1 is not in",
			"--queue=4611686018427387904":       "--queue: 4611686018427387904 is not in",
			"--redis-db=-1":                     "--redis-db: -1 is below zero",
			"--spam-at=NaN":                     "--ham-at and --spam-at",
			"--lose-at-most=0.1":                "0.1\" is not a share of ham from 0.01% to 5%",
			"--lose-at-most=-1%":                "is not a share",
			"--until-promised=never":            "--until-promised",
		}},
	} {
		for wrong, want := range p.wrongs {
			args := strings.Fields(p.args + " " + wrong)
			err := p.run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
			if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want wrong usage with %q", p.name, wrong, err, want)
			}
		}
	}
}

// What --from-topic does not go with is wrong usage.
func TestUsageOfFromTopic(t *testing.T) {
	for args, want := range map[string]string{
		"":                        "--source NAME",
		"--source=a --source=b":   "--source NAME",
		"--source=a=.5":           "--source NAME",
		"--source=a messages.txt": "in place of a file",
		"--source=a --spam=Junk":  "in place of a file",
		"--source=a --http=127.0.0.1:0 --token=x": "another ingest",
		"--source=a --rate=5":                     "leave --rate",
		"--source=a --no-resume":                  "leave --rate",
		"--source=a --retention=1s":               "--retention: 1s is below",
		"--source=a --ask=0.6":                    "--ask 0.6",
	} {
		all := append([]string{"--kafka=127.0.0.1:1", "--from-topic=feed"}, strings.Fields(args)...)
		err := Ingest(t.Context(), all, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want wrong usage with %q", args, err, want)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	clitest.Help(t, Ingest, []string{"--in-flight=16", "--deadline=10s", "--rate=0"}, "--help")
	clitest.Help(t, Learner, []string{"--save-every=3s", "--table-bits=18"}, "--help")
	clitest.Help(t, Scorer, []string{"--queue=0", "--spam-at=0.9", "--ham-at=0.5", "--poll-interval=250ms"}, "--help")
	for name, run := range map[string]func(context.Context, []string, cli.IO) error{
		"ingest": Ingest, "learner": Learner, "scorer": Scorer,
	} {
		clitest.Manual(t, run, "")
		clitest.Version(t, run, name)
	}
}
