package source

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hamlet/cmd/internal/process/cli"
)

type grammar struct {
	Flags
	FlipFlags
	Paths []string `arg:"" optional:""`
}

func TestFlags(t *testing.T) {
	seven, share := int64(7), 0.02
	var g grammar
	_, err := cli.Parse(cli.Program{Name: "test", Grammar: &g}, strings.Fields("--format mail --spam a,b --spam c --ham d --label 2 --positive M --drop 1,id --text body --missing * --dense x,y --shuffle 7 --limit 9"+
		" --sampled .02 --source desk=0.5 --source users --flip .1 --flip-from 100 --flip-kind spam --flip-source desk --seed -3 p -"), cli.IO{})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Paths: []string{"p", "-"}, Format: "mail", Spam: []string{"a,b", "c"}, Ham: []string{"d"},
		Label: "2", Positive: "M", Drop: "1,id", Text: "body", Missing: "*", Dense: []string{"x", "y"}, Shuffle: &seven, Limit: 9,
		Assign: []Assignment{{"desk", 0.5}, {"users", 0}}, Sampled: &share,
		Flip: FlipConfig{Rate: 0.1, From: 100, Kind: "spam", Source: "desk", Seed: -3},
	}
	if d := cmp.Diff(want, g.Config(g.Paths, g.FlipFlags)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if none := (&Flags{Dense: []string{"x"}, Limit: 9}); none.Given() != "" {
		t.Errorf("given without a flag that says how to read: %q", none.Given())
	}
	for _, args := range []string{"--format csv", "--spam a", "--ham a", "--index a", "--label foo", "--positive 1", "--drop id", "--text a", "--missing a", "--shuffle 0", "--source desk"} {
		var g grammar
		if _, err := cli.Parse(cli.Program{Name: "test", Grammar: &g}, strings.Fields(args), cli.IO{}); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(args, " "); g.Given() != got {
			t.Errorf("%s: given %q", args, g.Given())
		}
	}
	for _, bad := range []string{"--format pdf", "--flip-kind x", "--source a=2", "--shuffle x", "--colour"} {
		var usage *cli.UsageError
		if _, err := cli.Parse(cli.Program{Name: "test", Grammar: new(grammar)}, strings.Fields(bad), cli.IO{}); !errors.As(err, &usage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	var help bytes.Buffer
	if _, err := cli.Parse(cli.Program{Name: "test", Grammar: new(grammar)}, []string{"--help"}, cli.IO{Out: &help}); !errors.Is(err, cli.ErrHelp) {
		t.Fatal(err)
	}
	for _, flag := range []string{"--spam=PATH", "--index=FILE", "--shuffle=SEED", "--source=NAME[=SHARE]", "--flip=RATE"} {
		if !strings.Contains(help.String(), flag) {
			t.Errorf("%s is missing in the help:\n%s", flag, help.String())
		}
	}
}

// Flags that select labels to flip need --flip. --flip 0 suffices, and a seed alone is
// allowed.
func TestFlagsOfFlipsNeedARate(t *testing.T) {
	for _, args := range []string{"--flip-from 0", "--flip-from 10", "--flip-kind ham", "--flip-source desk", "--seed 0", "--flip-kind uniform"} {
		alone := args != "--seed 0" && args != "--flip-kind uniform"
		for flip, wrong := range map[string]bool{"": alone, " --flip 0": false, " --flip .1": false} {
			var g grammar
			if _, err := cli.Parse(cli.Program{Name: "test", Grammar: &g}, strings.Fields(args+flip), cli.IO{}); err != nil {
				t.Fatal(err)
			}
			err := g.FlipFlags.Check()
			name, _, _ := strings.Cut(args, " ")
			if wrong && (cli.Status(err) != cli.StatusUsage || !strings.HasPrefix(err.Error(), name+": no label is flipped without --flip RATE")) || !wrong && err != nil {
				t.Errorf("%s%s: %v", args, flip, err)
			}
		}
	}
}
