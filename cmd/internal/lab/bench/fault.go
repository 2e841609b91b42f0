package bench

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"hamlet/algos/drift"
	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/synthetic"
)

// A fault changes a stream from one event on.
type fault struct {
	name, meaning string
	names         []string // the kinds that are right for it; nil: nothing should be raised

	// generator makes the generator's fault begin at event at.
	generator func(cfg *synthetic.Config, at int)
	// of returns the change of a population's events, or nil if the fault does not apply.
	of func(w *population, r *rand.Rand) change
}

// A change alters one event. It replaces the vector or message of the body, because
// events share them. False drops the event.
type change func(ex *model.Example) (keep bool)

const (
	badRate       = 0.5 // fraction of the bad source's labels that are wrong; the generator's default
	remainingSpam = 0.25
	scale         = 3
	mirrored      = 20  // columns
	mirrorAmong   = 100 // they are chosen among the most frequent
)

var badLabels = []string{drift.KindLabelNoise}

// faults are six of bad labels, one of new mail and one of spam policy. The last two
// entries are everyday changes, which should raise no alarm but of numbers times 3.
var faults = []fault{
	{name: "5 % flips", meaning: "one label in twenty is wrong", names: badLabels, of: flips(0.05)},
	{name: "10 % flips", meaning: "one in ten", names: badLabels, of: flips(0.10)},
	{name: "20 % flips", meaning: "one in five", names: badLabels, of: flips(0.20)},
	{name: "20 % of spam", meaning: "one spam in five is called ham", names: badLabels, of: flipsOf(0.20, true)},
	{name: "20 % of ham", meaning: "one ham in five is called spam", names: badLabels, of: flipsOf(0.20, false)},
	{
		name: "bad source", meaning: "half the labels of a source that gives a quarter of them are wrong",
		names:     append([]string{drift.KindSource}, badLabels...),
		generator: func(cfg *synthetic.Config, at int) { cfg.BadFeedAt, cfg.BadFeedRate = at, badRate },
		of: func(w *population, r *rand.Rand) change {
			switch {
			case w.set == nil:
				return keepAll
			case !w.hears(w.bad):
				return nil
			}
			return func(ex *model.Example) bool {
				if r.Float64() < badRate && ex.Source == w.bad {
					ex.Spam = !ex.Spam
				}
				return true
			}
		},
	},
	{
		name: "new campaign", meaning: "three mails in ten are spam of an outbreak, in words that nobody has used " +
			"(generator)",
		names:     []string{drift.KindCovariate},
		generator: func(cfg *synthetic.Config, at int) { cfg.CampaignAt = at },
		of: func(w *population, _ *rand.Rand) change {
			if w.set == nil {
				return keepAll
			}
			return nil
		},
	},
	{
		name: "new policy", meaning: "newsletters count as spam (generator); 20 columns mirrored, absent where it " +
			"was present (vectors)",
		names:     []string{drift.KindConcept, drift.KindCovariate},
		generator: func(cfg *synthetic.Config, at int) { cfg.PolicyAt = at },
		of:        policy,
	},
	{
		name: "class balance", meaning: "three spams in four stay away",
		of: func(_ *population, r *rand.Rand) change {
			return func(ex *model.Example) bool { return r.Float64() < remainingSpam || !ex.Spam }
		},
	},
	{name: "rescaled", meaning: "all numbers times 3 (vectors); the text three times over (mail)",
		names: []string{drift.KindCovariate}, of: rescale},
}

func keepAll(*model.Example) bool { return true }

// flips returns a fault that makes labels of all sources wrong at a rate.
func flips(rate float64) func(*population, *rand.Rand) change {
	return func(_ *population, r *rand.Rand) change {
		return func(ex *model.Example) bool {
			if r.Float64() < rate {
				ex.Spam = !ex.Spam
			}
			return true
		}
	}
}

// flipsOf returns a fault that makes labels of one true class wrong at a rate.
func flipsOf(rate float64, spam bool) func(*population, *rand.Rand) change {
	return func(_ *population, r *rand.Rand) change {
		return func(ex *model.Example) bool {
			if u := r.Float64(); u < rate && ex.Spam == spam {
				ex.Spam = !ex.Spam
			}
			return true
		}
	}
}

// policy mirrors columns of a set of vectors: values other than 0 become 0, and 0 becomes
// the column's greatest value, for dense columns a tenth of it. It takes columns that are
// never negative, and not 0 in 1 % to 50 % of the rows, such as counts of words.
func policy(w *population, r *rand.Rand) change {
	if w.set == nil {
		return keepAll
	}
	var candidates []column
	for _, c := range w.columns {
		if c.least >= 0 && c.present*100 >= len(w.set) && c.present*2 <= len(w.set) && len(candidates) < mirrorAmong {
			candidates = append(candidates, c)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	r.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	candidates = candidates[:min(mirrored, len(candidates))]
	dense := len(w.model.Dense) > 0
	return func(ex *model.Example) bool {
		v := slices.Clone(ex.Body.Vector)
		for _, c := range candidates {
			value := c.most
			if dense {
				value /= 10
			}
			i, there := number(v, c.name)
			switch {
			case !there:
				v = slices.Insert(v, i, feature.Number{Name: c.name, Value: value})
			case v[i].Value != 0 && dense:
				v[i].Value = 0
			case v[i].Value != 0:
				v = slices.Delete(v, i, i+1)
			default:
				v[i].Value = value
			}
		}
		ex.Body.Vector = v
		return true
	}
}

func rescale(*population, *rand.Rand) change {
	return func(ex *model.Example) bool {
		if m := ex.Body.Message; m != nil {
			longer := *m
			longer.Body, longer.BodyBytes = bytes.Repeat(m.Body, scale), scale*m.BodyBytes
			ex.Body.Message = &longer
			return true
		}
		v := slices.Clone(ex.Body.Vector)
		for i := range v {
			v[i].Value *= scale
		}
		ex.Body.Vector = v
		return true
	}
}
