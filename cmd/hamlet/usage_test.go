package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/testkit/clitest"
)

func TestHelpAndVersion(t *testing.T) {
	clitest.Help(t, run, []string{"--save-every=3s", "--spam-at=0.9", "--ham-at=0.5", "--table-bits=18", "[no-]alarms"}, "up", "--help")
	clitest.Help(t, run, []string{"--set=KEY=VALUE", "--delay=0"}, "eval", "--help")
	clitest.Help(t, run, []string{"--timeout=10s", "--server=nats://127.0.0.1:4222"}, "score", "--help")
	clitest.Help(t, run, []string{"--timeout=10s", "--json"}, "info", "--help")
	clitest.Help(t, run, []string{"--open", "--limit=50", "--server=nats://127.0.0.1:4222"}, "alarms", "--help")
	clitest.Help(t, run, []string{"versions", "rollback", "unpin", "--redis=ADDR"}, "model", "--help")
	clitest.Help(t, run, []string{"--redis=ADDR"}, "model", "pin", "--help")
	clitest.Help(t, run, []string{"all models that are kept"}, "model", "list", "--help")
	clitest.Help(t, run, []string{"--redis=ADDR"}, "model", "show", "--help")
	clitest.Help(t, run, []string{"--limit=10"}, "model", "diff", "--help")
	clitest.Help(t, run, []string{"--burn-in=1000", "--level=0.95", "--since=WHEN"}, "model", "compare", "--help")
	clitest.Help(t, run, []string{"Learning goes on, and answers come from the pinned version"}, "model", "rollback", "--help")
	clitest.Help(t, run, []string{"--keep=0", "--all-versions", "only its owner may read"}, "backup", "--help")
	clitest.Help(t, run, []string{"Every checksum is compared", "--backup=NAME"}, "verify", "--help")
	clitest.Help(t, run, []string{"--last=20", "why labels were not learnt"}, "log", "show", "--help")
	clitest.Help(t, run, []string{"--replace", "--new-log", "--data=DIR", "--as=NAME"}, "restore", "--help")
	clitest.Help(t, run, []string{"--source=NAME", "--tenant=default", "--action=learn", "--any-source"}, "token", "new", "--help")
	clitest.Help(t, run, []string{"--limit=20", "--since=72h", "--mail-nats=URL"}, "review", "--help")
	clitest.Help(t, run, []string{"One model for programs in other languages", "explain  events, level?, words?"}, "pipe", "--help")
	clitest.Version(t, run, "hamlet")
}

// Commands that work on the folder of hamlet up as well do not speak as if Redis had the models.
func TestHelpKnowsTheFolder(t *testing.T) {
	for _, command := range []string{"backup", "restore", "verify", "model", "model list", "model show", "model diff", "model promote", "withdraw"} {
		var out bytes.Buffer
		err := run(t.Context(), append(strings.Fields(command), "--help-all"), cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard})
		if !errors.Is(err, cli.ErrHelp) {
			t.Fatalf("%s: %v", command, err)
		}
		if said := regexp.MustCompile(`(Redis (keeps|has)|models?\s+(in|into)\s+Redis|reads\s+Redis|lease in Redis|loss of Redis)[^\n]*`).FindString(out.String()); said != "" {
			t.Errorf("%s: %q", command, said)
		}
	}
}

// Under the names of the services hamlet is the services.
func TestNamesOfServices(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/hamlet-learner": "learner", "hamlet-scorer": "scorer", "./hamlet-ingest": "ingest", "/usr/bin/hamlet": "hamlet", "hamlet-new": "hamlet",
	} {
		name, program := programOf(path)
		if name != want {
			t.Errorf("%s is %s, want %s", path, name, want)
		}
		clitest.Version(t, program, want)
	}
}

func TestHelpInOtherForms(t *testing.T) {
	clitest.Manual(t, run, "up", "gateway", "console serve")
}

// A command that is gone says what does the same, whatever follows it. The help does not show it.
func TestCommandsThatAreGone(t *testing.T) {
	for command, want := range map[string]string{
		"model export":  "there is no hamlet model export any more: hamlet backup --model MODEL FILE.tar",
		"model import":  "there is no hamlet model import any more: hamlet restore FILE --as NAME",
		"model verify":  "there is no hamlet model verify any more: hamlet verify FILE",
		"model replace": "there is no hamlet model replace any more: hamlet model promote NAME",
	} {
		for _, more := range []string{"", " --socket unix:/run/hamlet/spamd.sock", " FILE --as M"} {
			err := run(t.Context(), strings.Fields(command+more), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
			if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("%s%s: %v, want wrong usage: %s", command, more, err, want)
			}
		}
	}
}

// A flag that would do nothing is wrong usage, in eval and up alike: one that is
// about synthetic mail where there is a source, and the other way round.
func TestFlagsThatWouldDoNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte("a,b,spam\n1,2,1\n2,1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type refusal struct {
		args, want string
	}
	both := []refusal{
		{"--mail-seed 4 " + file, "--mail-seed is about synthetic mail"},
		{"--mail-seed 0 " + file, "--mail-seed is about synthetic mail"},
		{"--campaign-share .3 " + file, "--campaign-share is about synthetic mail"},
		{"--bad-feed-rate .5 " + file, "--bad-feed-rate is about synthetic mail"},
		{"--new-policy 100 " + file, "--new-policy is about synthetic mail"},
		{"--generate 10 " + file, "--generate: synthetic mail is in place of a source"},
		{"--generate 10 --campaign-share .5", "--campaign-share: nothing changes without --new-campaign N"},
		{"--generate 10 --new-policy 5 --bad-feed-rate .5", "--bad-feed-rate: nothing changes without --bad-feed N"},
		{"--generate 10 --format csv", "--format is about a source"},
		{"--generate 10 --label foo", "--label is about a source"},
		{"--generate 10 --positive 1", "--positive is about a source"},
		{"--generate 10 --drop id", "--drop is about a source"},
		{"--generate 10 --shuffle 1", "--shuffle is about a source"},
		{"--generate 10 --source desk", "--source is about a source"},
		{"--generate 10 --limit -1", "--limit: -1 is below zero"},
	}
	for command, refusals := range map[string][]refusal{
		"eval": append([]refusal{
			{"--mail-seed 4", "--mail-seed is about synthetic mail"},
			{"--generate 10 --flip-from 5", "--flip-from: no label is flipped without --flip RATE"},
			{"--flip-kind ham " + file, "--flip-kind: no label is flipped without --flip RATE"},
		}, both...),
		"up": append([]refusal{
			{"--generate 0 " + file, "--generate: synthetic mail is in place of a source"},
			{"--rate NaN", "--rate: NaN is neither"},
			{"--keep-versions 0", "--keep-versions: 0 is not in"},
			{"--alert-replicas 0", "--alert-replicas: 0 is not in"},
		}, both...),
	} {
		for _, c := range refusals {
			args := append([]string{command}, strings.Fields(c.args)...)
			if command == "up" {
				args = append(args, "--once")
			}
			var out, errs bytes.Buffer
			err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
			if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want wrong usage with %q", args, err, c.want)
			}
		}
	}
	// What is given has its effect, and so has what is left out.
	sums := map[string]string{}
	for _, args := range []string{"", "--mail-seed 1", "--bad-feed 20", "--bad-feed 20 --bad-feed-rate .5", "--bad-feed 20 --bad-feed-rate 1"} {
		var out, errs bytes.Buffer
		args := append(strings.Fields("eval --generate 100 --table-bits 8 --json"), strings.Fields(args)...)
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); err != nil {
			t.Fatal(errors.Join(err, errors.New(errs.String())))
		}
		_, rest, ok := strings.Cut(out.String(), `"model_sha256":"`)
		if !ok {
			t.Fatalf("%v: %s", args, out.String())
		}
		sums[strings.Join(args[6:], " ")] = rest[:64]
	}
	if sums["--bad-feed 20"] != sums["--bad-feed 20 --bad-feed-rate .5"] {
		t.Error("--bad-feed-rate is not .5 unless given")
	}
	delete(sums, "--bad-feed 20")
	different := map[string]bool{}
	for _, sum := range sums {
		different[sum] = true
	}
	if len(different) != len(sums) {
		t.Errorf("flags without an effect: %v", sums)
	}
}

// "-" is standard output; the table makes way to standard error. Two kinds of data
// on standard output are wrong usage. No file is called "-".
func TestDataOnStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("rows.csv", []byte("a,b,spam\n1,2,1\n2,1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eval := func(args string) (out, errs bytes.Buffer, err error) {
		err = run(t.Context(), append([]string{"eval", "rows.csv"}, strings.Fields(args)...), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
		return out, errs, err
	}
	saved, _, err := eval("--save model.bytes --scores scores.csv")
	if err != nil || !strings.Contains(saved.String(), "1-ROCA%") {
		t.Fatalf("%v; printed %s", err, saved.String())
	}
	for args, file := range map[string]string{"--scores -": "scores.csv", "--save -": "model.bytes"} {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, errs, err := eval(args)
		if err != nil || !bytes.Equal(out.Bytes(), want) || !strings.Contains(errs.String(), "1-ROCA%") {
			t.Errorf("%s: %v; %d bytes on standard output, want %d; standard error %s", args, err, out.Len(), len(want), errs.String())
		}
	}
	for _, args := range []string{"--scores - --alerts -", "--scores - --json", "--alerts - --save -"} {
		if _, _, err := eval(args); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "both write to standard output") {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file is called -")
	}
}

// What is in hamlet-lab is wrong usage here, and the text names that program.
func TestCommandsOfTheLaboratory(t *testing.T) {
	for args, want := range map[string]string{
		"bench": "hamlet-lab bench", "bench mail --bogofilter x": "hamlet-lab bench", "fit --anything": "hamlet-lab fit", "lab run all": "hamlet-lab",
	} {
		err := run(t.Context(), strings.Fields(args), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("hamlet %s: %v, want wrong usage that names %s", args, err, want)
		}
	}
}
