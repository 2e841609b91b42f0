package settings

import (
	"errors"
	"fmt"
	"go/doc/comment"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"hamlet/algos/ensemble"
	"hamlet/algos/model"
	"hamlet/algos/text"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/strictness"
)

// Model are the flags that say what the model is made of, as far as an operator can
// know it. All else is set in the configuration file below "model" or, in eval and
// bench, by ResearchModel. A learner that finds a model made with other settings refuses
// to go on.
type Model struct {
	Experts       []string `help:"full, or lean for a third of the CPU, or a list." placeholder:"full" group:"Model"`
	TableBits     *int     `help:"2^N weights per text expert; 18: 28 MiB per model." placeholder:"18" group:"Model"`
	SkipHeaders   []string `help:"Mail headers to ignore; from-line is mbox's own." placeholder:"NAME" group:"Model"`
	Ensembles     []string `help:"none, or a list of: ${boosters}." placeholder:"LIST" group:"Model"`
	SecondHead    *float64 `help:"Add a head that forgets by a factor such as 0.99." placeholder:"0" group:"Model"`
	Alarms        *bool    `help:"Watch the stream for change." negatable:"" group:"Model"`
	WithoutSource []string `help:"Make the model as if NAME had never taught. May repeat." sep:"none" placeholder:"NAME" group:"Model" rare:"up"`
	Frozen        string   `help:"An expert that never learns: see hamlet freeze." type:"existingfile" placeholder:"FILE" group:"Model"`

	file *modelFile // what the configuration file says; AfterApply sets it
}

// AfterApply is called by kong once the flags are read.
func (f *Model) AfterApply(file *modelFile) error {
	f.file = file
	return nil
}

// A modelFile is what the configuration file's mapping "model" says.
type modelFile struct{ model.Config }

// ResearchModel is Model with flags for whoever tries what else a model could be.
type ResearchModel struct {
	Model
	Set  []string `help:"Set a key of the model's configuration. May repeat." placeholder:"KEY=VALUE" sep:"none" env:"-" group:"Research"`
	Keys keysFlag `help:"List those keys with their defaults." env:"-" group:"Research"`
}

// Config is Model's, with the settings of Set on top.
func (f *ResearchModel) Config(dense []string) (model.Config, error) {
	return f.config(dense, f.Set)
}

type keysFlag bool

// BeforeReset is called by kong where the flag is given.
func (keysFlag) BeforeReset(app *kong.Kong) error {
	err := WriteKeys(app.Stdout)
	app.Exit(0)
	return err
}

// WriteKeys prints the keys of a model's configuration, with defaults and help.
func WriteKeys(w io.Writer) error {
	var parser comment.Parser
	printer := comment.Printer{TextPrefix: "    ", TextWidth: 76}
	for _, f := range model.Fields() {
		if _, err := fmt.Fprintf(w, "%s (default %s)\n%s", f.Key, f.Default, printer.Text(parser.Parse(f.Help))); err != nil {
			return err
		}
	}
	return nil
}

// Config returns the model's configuration. Dense are the names that a source or a
// flag lets into the head as they are, instead of hashed. The flags win over the
// file. A setting that a model does not take is wrong usage.
func (f *Model) Config(dense []string) (model.Config, error) { return f.config(dense, nil) }

// config is Config with settings KEY=VALUE that win over all others.
func (f *Model) config(dense, research []string) (model.Config, error) {
	var cfg model.Config
	if f.file != nil {
		cfg = f.file.Config
	}
	if len(dense) > 0 {
		cfg.Dense = dense
	}
	if err := f.apply(&cfg); err != nil {
		return cfg, err
	}
	for _, s := range research {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return cfg, cli.Usagef("--set %s: KEY=VALUE is wanted; --keys lists the keys", s)
		}
		if err := cfg.Set(key, value); err != nil {
			return cfg, cli.Usagef("--set %w; --keys lists the keys", err)
		}
	}
	if cfg.Alarms.Off {
		cfg.Alarms = model.Alarms{Off: true}
	}
	if _, err := model.New(cfg); err != nil {
		if errors.Is(err, model.ErrNoExpert) {
			err = fmt.Errorf("%w: name its file with --frozen", err)
		}
		return cfg, cli.Usagef("the model's settings: %w", err)
	}
	return cfg, nil
}

// apply puts the flags that were given into cfg.
func (f *Model) apply(cfg *model.Config) error {
	if len(f.Experts) > 0 {
		cfg.TextExperts = f.Experts
	}
	if f.TableBits != nil {
		cfg.TableBits = *f.TableBits
	}
	if len(f.SkipHeaders) > 0 {
		cfg.SkipHeaders = f.SkipHeaders
	}
	if slices.Equal(f.WithoutSource, []string{"none"}) {
		cfg.WithoutSources = []string{}
	} else if len(f.WithoutSource) > 0 {
		cfg.WithoutSources = f.WithoutSource
	}
	if f.SecondHead != nil {
		cfg.SecondHead = *f.SecondHead
	}
	if f.Alarms != nil {
		cfg.Alarms.Off = !*f.Alarms
	}
	if err := f.applyFrozen(cfg); err != nil {
		return err
	}
	if slices.Equal(f.Ensembles, []string{"none"}) {
		cfg.TextEnsembles, cfg.VectorEnsembles = []string{}, []string{}
		return nil
	}
	for _, kind := range f.Ensembles {
		switch {
		case kind == "none":
			return cli.Usagef("--ensembles: none, or a list without it")
		case !ensemble.Kind(kind).Valid():
			return cli.Usagef("--ensembles: %q is not one of %v", kind, ensemble.Kinds())
		}
	}
	if len(f.Ensembles) > 0 {
		cfg.TextEnsembles, cfg.VectorEnsembles = f.Ensembles, f.Ensembles
	}
	return nil
}

// applyFrozen reads the frozen expert's file into cfg. A file that the configuration file
// does not name by its SHA-256 is wrong usage, if it names one.
func (f *Model) applyFrozen(cfg *model.Config) error {
	if f.Frozen == "" {
		return nil
	}
	b, err := os.ReadFile(f.Frozen)
	if err != nil {
		return fmt.Errorf("--frozen: %w", err)
	}
	expert, err := text.DecodeFrozen(b)
	if err != nil {
		return cli.Usagef("--frozen %s: %w", f.Frozen, err)
	}
	named := cfg.Frozen
	*cfg = cfg.WithFrozen(expert)
	if named != "" && named != "none" && named != cfg.Frozen {
		return cli.Usagef("--frozen %s: its SHA-256 is %s, the configuration file's model.frozen is %s",
			f.Frozen, cfg.Frozen, named)
	}
	return nil
}

// Thresholds are the flags that turn a probability into a verdict.
type Thresholds struct {
	SpamAt float64 `help:"Spam if p is at least this and its interval above ½." default:"${spam_at}" placeholder:"P"`
	HamAt  float64 `help:"Ham if p is at most this. Between the two: unsure." default:"${ham_at}" placeholder:"P"`
}

// Check reports thresholds that are no probabilities in order.
func (f Thresholds) Check() error {
	if !(0 < f.HamAt && f.HamAt <= f.SpamAt && f.SpamAt <= 1) {
		return cli.Usagef("--ham-at and --spam-at: 0 < ham-at ≤ spam-at ≤ 1 is wanted")
	}
	return nil
}

// Budget are the flags of a budget for lost ham, in the place of Thresholds. strictness.Share has its bounds.
type Budget struct {
	LoseAtMost    strictness.Share `help:"Call at most this share of ham spam, such as 0.1%, once enough sampled labels promise it." placeholder:"SHARE"`
	UntilPromised string           `help:"What decides until then: the fixed --spam-at, or none: nothing is spam." enum:"fixed,none" default:"fixed" placeholder:"fixed|none" rare:"up"`
}

// Scorer are the flags of answering that hamlet up has too.
type Scorer struct {
	Thresholds
	Budget
	Journal
	KeepMail
}

// Check reports every mistake in the groups.
func (f Scorer) Check() error { return Check(f.Thresholds, f.Journal, f.KeepMail) }
