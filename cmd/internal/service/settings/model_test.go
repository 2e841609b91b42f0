package settings

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/ensemble"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
)

// configure returns the model that the flags make.
func configure(t *testing.T, dense []string, args ...string) (model.Config, error) {
	t.Helper()
	var f struct {
		ResearchModel
		cli.LogFlags
		cli.ProgramFlags
	}
	if _, err := Parse("test", "x", &f, args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); err != nil {
		return model.Config{}, err
	}
	return f.ResearchModel.Config(dense)
}

// The defaults that the flags show are those of the model, and those of the
// example configuration.
func TestDefaultsAreTheModels(t *testing.T) {
	want := string(model.Config{Dense: []string{"a"}}.JSON())
	for _, args := range [][]string{nil, {"--config", "../../../../deploy/hamlet.yaml"}} {
		got, err := configure(t, []string{"a"}, args...)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(got.JSON()); s != want {
			t.Errorf("%v make\n%s\nthe model's defaults are\n%s", args, s, want)
		}
	}
}

func TestEnsembleFlags(t *testing.T) {
	var all []string
	for _, k := range ensemble.Kinds() {
		all = append(all, string(k))
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--ensembles=none", []string{}},
		{"--ensembles=bblr", []string{"bblr"}},
		{"--ensembles=" + strings.Join(all, ","), all},
	} {
		cfg, err := configure(t, nil, c.args)
		if err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		if cfg.TextEnsembles == nil || cfg.VectorEnsembles == nil ||
			!slices.Equal(cfg.TextEnsembles, c.want) || !slices.Equal(cfg.VectorEnsembles, c.want) {
			t.Errorf("%s: text %q, vectors %q, want %q", c.args, cfg.TextEnsembles, cfg.VectorEnsembles, c.want)
		}
	}
	for _, c := range []struct{ arg, want string }{
		{"--ensembles=none,bblr", "none, or a list without it"},
		{"--ensembles=forest", `--ensembles: "forest" is not one of`},
		{"--set=rebuild=70", "rebuild: 70"},
		{"--set=window=1", "window: 1"},
		{"--second-head=2", "second_head: ρ = 2"},
		{"--set=alarms.confirmed=.3", "confirmed drop"},
		{"--set=alarms.concept=-1", "alarms"},
		{"--set=alarms.concept=x", "--set alarms.concept: \"x\" is not a finite number; --keys lists the keys"},
		{"--set=colour=red", "--set \"colour\": the configuration of a model has no such key; --keys lists the keys"},
		{"--set=colour", "--set colour: KEY=VALUE is wanted"},
	} {
		_, err := configure(t, nil, c.arg)
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.arg, err, c.want)
		}
	}
	if _, err := configure(t, nil, "--set=alarms.drop=.05"); err != nil { // the other thresholds follow
		t.Error(err)
	}
	cfg, err := configure(t, nil, "--no-alarms", "--set=alarms.drop=.01")
	if err != nil || cfg.Alarms != (model.Alarms{Off: true}) {
		t.Errorf("--no-alarms: %+v, %v", cfg.Alarms, err)
	}
}

// The help of --ensembles lists every booster, the default first.
func TestEnsemblesHelp(t *testing.T) {
	var help strings.Builder
	var f struct{ Model }
	if _, err := Parse("test", "x", &f, []string{"--help"}, cli.IO{Out: &help, Err: io.Discard}); !errors.Is(err, cli.ErrHelp) {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(help.String()), " ")
	for i, k := range ensemble.Kinds() {
		want := ", " + string(k)
		if i == 0 {
			want = "none, or a list of: " + string(k) + " (default for dense vectors), "
		}
		if !strings.Contains(text, want) {
			t.Errorf("the help lacks %q:\n%s", want, help.String())
		}
	}
}

// write makes a configuration file and returns the flag that names it.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hamlet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + path
}

// What is nearer to the user wins: --set over a flag or a source's dense names, those
// over the file.
func TestOrderOfModelSettings(t *testing.T) {
	file := write(t, "model:\n  table_bits: 10\n  dense: [x]\n  second_head: .9\n  alarms: {off: true}\n  vector_head: {site: jj, refresh: 500}\n  vector_ensembles: []\n")
	for _, c := range []struct {
		dense []string
		args  []string
		want  model.Config
	}{
		{nil, nil, model.Config{TableBits: 10, Dense: []string{"x"}, SecondHead: .9, Alarms: model.Alarms{Off: true},
			VectorHead: model.Head{Site: "jj", Refresh: 500}, VectorEnsembles: []string{}}},
		{[]string{"y"}, []string{"--table-bits=12", "--second-head=0", "--alarms", "--ensembles=bblr"},
			model.Config{TableBits: 12, Dense: []string{"y"}, VectorHead: model.Head{Site: "jj", Refresh: 500},
				TextEnsembles: []string{"bblr"}, VectorEnsembles: []string{"bblr"}}},
		{[]string{"y"}, []string{"--table-bits=12", "--set=table_bits=13", "--set=dense=z", "--set=vector_head.site=rvga"},
			model.Config{TableBits: 13, Dense: []string{"z"}, SecondHead: .9, Alarms: model.Alarms{Off: true},
				VectorHead: model.Head{Site: "rvga", Refresh: 500}, VectorEnsembles: []string{}}},
	} {
		got, err := configure(t, c.dense, append(c.args, file)...)
		if err != nil || string(got.JSON()) != string(c.want.JSON()) {
			t.Errorf("%v: %v\n got %s\nwant %s", c.args, err, got.JSON(), c.want.JSON())
		}
	}
	if _, err := configure(t, nil, write(t, "model: {vector_hed: {site: jj}}\n")); cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), `"vector_hed.site"`) {
		t.Errorf("an unknown key: %v", err)
	}
}

// --keys lists every key with its default, in 80 columns.
func TestKeys(t *testing.T) {
	var b strings.Builder
	if err := WriteKeys(&b); err != nil {
		t.Fatal(err)
	}
	for _, f := range model.Fields() {
		if want := f.Key + " (default " + f.Default + ")\n"; !strings.Contains(b.String(), want) {
			t.Errorf("--keys lacks %q", want)
		}
	}
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > 81 {
			t.Errorf("too wide: %s", line)
		}
	}
}

// A budget is read from a flag, the environment and the configuration file alike.
func TestBudget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hamlet.yaml")
	if err := os.WriteFile(file, []byte("lose-at-most: 0.002\nuntil-promised: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, args string
		want      Budget
	}{
		{"", "", Budget{0, "fixed"}},
		{"", "--lose-at-most=0.1%", Budget{0.001, "fixed"}},
		{"0.5%", "", Budget{0.005, "fixed"}},
		{"", "--config=" + file, Budget{0.002, "none"}},
		{"0.5%", "--lose-at-most 0.01 --config " + file, Budget{0.01, "none"}},
	} {
		if c.env != "" {
			t.Setenv("HAMLET_LOSE_AT_MOST", c.env)
		} else {
			os.Unsetenv("HAMLET_LOSE_AT_MOST") // Setenv has the test put it back
		}
		var f struct {
			Budget
			cli.LogFlags
			cli.ProgramFlags
		}
		stdio := cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
		if _, err := Parse("test", "x", &f, strings.Fields(c.args), stdio); err != nil || f.Budget != c.want {
			t.Errorf("%q, environment %q: %+v, %v; want %+v", c.args, c.env, f.Budget, err, c.want)
		}
	}
}
