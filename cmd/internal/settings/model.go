package settings

import (
	"fmt"
	"slices"

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
	TrustBy         string   `help:"Whose rate of wrong labels a label is believed by: that of its source, or that of all." enum:"source,all" default:"source" group:"Model"`
	SpamShare       bool     `help:"Let the head of mail and text see the share of spam among the last labels. It helps where labels come late." group:"Model"`

	TextSite       string `help:"How the head of mail and text approximates a likelihood: rvga, jj (Jaakkola-Jordan) or exact-rvga." enum:"rvga,jj,exact-rvga" default:"rvga" group:"Model"`
	TextHalfLife   int    `help:"Events after which what that head has learnt counts half; 0 is for ever." default:"0" placeholder:"N" group:"Model"`
	TextRefresh    int    `help:"Solve that head's last 2,500 sites anew at every so many events; 0 is never." default:"0" placeholder:"N" group:"Model"`
	VectorSite     string `help:"The same for the head of vectors." enum:"rvga,jj,exact-rvga" default:"rvga" group:"Model"`
	VectorHalfLife int    `help:"The same for the head of vectors." default:"0" placeholder:"N" group:"Model"`
	VectorRefresh  int    `help:"The same for the head of vectors." default:"0" placeholder:"N" group:"Model"`

	Ensembles      []string `help:"Ensembles that are rebuilt from the latest events and stand beside the head: anyboost, realadaboost, poeboost.ds, poeboost.cs, adaboost, bhboost, viboost, bblr, or none. Without it anyboost for vectors with dense names, none for mail, text and hashed vectors." placeholder:"LIST|none" group:"Model"`
	EnsembleWindow int      `help:"How many of the latest events an ensemble is built from; 2000 unless given." default:"2000" placeholder:"N" group:"Model"`
	RebuildEvery   int      `help:"Build it anew at every so many events, a multiple of 50; 500 unless given." default:"500" placeholder:"N" group:"Model"`
	SecondHead     float64  `help:"Add a second head that forgets by this factor an event, such as 0.99: a cheap remedy for drift. 0 is none." default:"0" placeholder:"RHO" group:"Model"`

	Alarms         bool    `help:"Watch for labels that went bad, mail unlike anything learnt, and a world that changed." default:"true" negatable:"" group:"Alarms"`
	AlarmDrop      float64 `help:"Label noise: raised when ln SNR lies so far below its running median, in nats; 0.2 unless given. With the default thresholds there was no false alarm in 1,000,000 clean events resampled from spambase (November 2026)." default:"0.2" placeholder:"NATS" group:"Alarms"`
	AlarmConfirmed float64 `help:"Label noise: or so far, while the flip rate is above --alarm-flip-rate; 0 is 0.1, or --alarm-drop where that is less." default:"0" placeholder:"NATS" group:"Alarms"`
	AlarmFlipRate  float64 `help:"Label noise: the flip rate that confirms a small drop; 0.01 unless given." default:"0.01" placeholder:"RATE" group:"Alarms"`
	AlarmClear     float64 `help:"Label noise: cleared when the drop is below; 0 is half of --alarm-confirmed." default:"0" placeholder:"NATS" group:"Alarms"`
	AlarmCovariate float64 `help:"Covariate: raised when the leverage of the last 30 events or so, or of mail, text and hashed vectors the surprise of the last 60, lies above its past by so many of one event's standard deviations; 0.65 unless given, which gave no false alarm in the same 1,000,000 events, nor in as many of synthetic mail." default:"0.65" placeholder:"UNITS" group:"Alarms"`
	AlarmConcept   float64 `help:"Concept: raised when the log loss has exceeded its running mean by so many nats in all (Page-Hinkley); 28 unless given. 24, 28 and 32 gave 4.9, 2.2 and 1.2 false alarms in 100,000 losses drawn from a clean pass over spambase." default:"28" placeholder:"NATS" group:"Alarms"`
}

// Config returns the model's configuration; dense are the names that enter the
// head as they are, instead of hashed. A flag outside its range is wrong usage.
func (f Model) Config(dense []string) (model.Config, error) {
	cfg := model.Config{
		TableBits: f.TableBits, Dense: dense, DuplicateWindow: f.DuplicateWindow,
		TextExperts: f.TextExperts, SkipHeaders: f.SkipHeaders, LabelTrust: f.LabelTrust, TrustBy: f.TrustBy, SpamShare: f.SpamShare,
		TextHead:   model.Head{Site: f.TextSite, HalfLife: f.TextHalfLife, Refresh: f.TextRefresh},
		VectorHead: model.Head{Site: f.VectorSite, HalfLife: f.VectorHalfLife, Refresh: f.VectorRefresh},
		SecondHead: f.SecondHead, Window: f.EnsembleWindow, Rebuild: f.RebuildEvery,
		Alarms: model.Alarms{
			Drop: f.AlarmDrop, Confirmed: f.AlarmConfirmed, FlipRate: f.AlarmFlipRate, Clear: f.AlarmClear,
			Covariate: f.AlarmCovariate, Concept: f.AlarmConcept,
		},
	}
	if !f.Alarms {
		cfg.Alarms = model.Alarms{Off: true}
	}
	switch {
	case len(f.Ensembles) == 0: // the model's defaults
	case slices.Contains(f.Ensembles, "none"):
		if len(f.Ensembles) > 1 {
			return cfg, cli.Usagef("--ensembles: none, or a list without it")
		}
		cfg.TextEnsembles, cfg.VectorEnsembles = []string{}, []string{}
	default:
		cfg.TextEnsembles, cfg.VectorEnsembles = f.Ensembles, f.Ensembles
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
