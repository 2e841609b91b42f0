package settings

import (
	"fmt"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
)

// Model are the flags that say what the model is made of. They are part of its
// bytes: a learner that finds a model made with others refuses to go on.
type Model struct {
	TableBits       int      `help:"Size of each expert's table: 2^N pairs of float32. 18 makes a mail model of 8 MiB; 20 gains a little on long streams." default:"18" placeholder:"N" group:"Model"`
	DuplicateWindow int      `help:"How many events back a copy is known." default:"100000" placeholder:"N" group:"Model"`
	TextExperts     []string `help:"Experts that read mail and text: header-words, text-5grams, text-words, opening-4grams; all without it." placeholder:"NAME,…" group:"Model"`
	SkipHeaders     []string `help:"Headers of mail that are not read, by name; from-line is the mbox From line. Leave out what your own servers write where spam and ham were collected in different places." placeholder:"NAME,…" group:"Model"`
	LabelTrust      string   `help:"Where a label counts as much as it is believed: text (mail and text), all, or none. Without it all where ensembles run on dense vectors, else text." enum:",text,all,none" default:"" placeholder:"WHERE" group:"Model"`

	TextSite       string `help:"How the head of mail and text approximates a likelihood: rvga, jj (Jaakkola-Jordan) or exact-rvga." enum:"rvga,jj,exact-rvga" default:"rvga" group:"Model"`
	TextHalfLife   int    `help:"Events after which what that head has learnt counts half; 0 is for ever." default:"0" placeholder:"N" group:"Model"`
	TextRefresh    int    `help:"Solve that head's last 2,500 sites anew at every so many events; 0 is never." default:"0" placeholder:"N" group:"Model"`
	VectorSite     string `help:"The same for the head of vectors." enum:"rvga,jj,exact-rvga" default:"rvga" group:"Model"`
	VectorHalfLife int    `help:"The same for the head of vectors." default:"0" placeholder:"N" group:"Model"`
	VectorRefresh  int    `help:"The same for the head of vectors." default:"0" placeholder:"N" group:"Model"`
}

// Config returns the model's configuration; dense are the names that enter the
// head as they are, instead of hashed. A flag outside its range is wrong usage.
func (f Model) Config(dense []string) (model.Config, error) {
	cfg := model.Config{
		TableBits: f.TableBits, Dense: dense, DuplicateWindow: f.DuplicateWindow,
		TextExperts: f.TextExperts, SkipHeaders: f.SkipHeaders, LabelTrust: f.LabelTrust,
		TextHead:   model.Head{Site: f.TextSite, HalfLife: f.TextHalfLife, Refresh: f.TextRefresh},
		VectorHead: model.Head{Site: f.VectorSite, HalfLife: f.VectorHalfLife, Refresh: f.VectorRefresh},
	}
	if _, err := model.New(cfg); err != nil {
		return cfg, &cli.UsageError{Err: fmt.Errorf("the model's settings: %w", err)}
	}
	return cfg, nil
}

// Thresholds are the flags that turn a probability into a verdict.
type Thresholds struct {
	SpamAt float64 `help:"Verdict spam from this probability on, if the interval's lower end is above one half." default:"0.9" placeholder:"P" group:"Verdicts"`
	HamAt  float64 `help:"Verdict ham up to this probability; between the two it is unsure." default:"0.5" placeholder:"P" group:"Verdicts"`
}

// WrongThresholds says what Valid asks for.
const WrongThresholds = "--ham-at and --spam-at: 0 < ham-at ≤ spam-at ≤ 1 is wanted"

// Valid reports whether the thresholds are probabilities in order.
func (f Thresholds) Valid() bool { return 0 < f.HamAt && f.HamAt <= f.SpamAt && f.SpamAt <= 1 }

// Shared are the flags that one configuration file may hold for all services.
type Shared struct {
	ModelFlag
	Kafka
	NATS
	Redis
	Model
	Topic
	Versions
	Thresholds
	Alerts
}
