package settings

import (
	"io"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/ensemble"
	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
)

// configure returns the model that the flags make.
func configure(t *testing.T, dense []string, args ...string) (model.Config, error) {
	t.Helper()
	var f struct {
		Model
		cli.LogFlags
		cli.ConfigFlag
	}
	if _, err := cli.Parse(cli.Program{Name: "test", Description: "x", Grammar: &f, Shared: &Shared{}}, args,
		cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	return f.Model.Config(dense)
}

// The defaults that the flags show are those of the model, and those of the
// example configuration.
func TestDefaultsAreTheModels(t *testing.T) {
	want := string(model.Config{Dense: []string{"a"}}.JSON())
	for _, args := range [][]string{nil, {"--config", "../../../deploy/hamlet.yaml"}} {
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
		{"--ensembles=forest", `"forest" is not one of`},
		{"--rebuild-every=70", "rebuild: 70"},
		{"--ensemble-window=1", "window: 1"},
		{"--second-head=2", "second_head: ρ = 2"},
		{"--alarm-confirmed=.3", "confirmed drop"},
		{"--alarm-concept=-1", "alarms"},
	} {
		_, err := configure(t, nil, c.arg)
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.arg, err, c.want)
		}
	}
	if _, err := configure(t, nil, "--alarm-drop=.05"); err != nil { // the other thresholds follow
		t.Error(err)
	}
	cfg, err := configure(t, nil, "--no-alarms", "--alarm-drop=.01")
	if err != nil || cfg.Alarms != (model.Alarms{Off: true}) {
		t.Errorf("--no-alarms: %+v, %v", cfg.Alarms, err)
	}
}
