package bench

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/lab/synthetic"
)

// A fault is something that happens to a stream at one event and lasts.
type fault struct {
	name, meaning string

	// generator switches the fault on in the generator, from event at on.
	generator func(cfg *synthetic.Config, at int)
	// of returns the change of the world's events from there on; nil: the world
	// has no such fault.
	of func(w *world, r *rand.Rand) change
}

// A change alters one event of its own, whose body it shares with others; false
// leaves the event out.
type change func(ex *model.Example) (keep bool)

const (
	badRate     = 0.5 // of the bad source's labels that are wrong; the generator's default
	keptSpam    = 0.25
	scale       = 3
	mirrored    = 20  // columns
	mirrorAmong = 100 // of the most frequent
)

// faults are what the alarms are tried on. The first four are bad labels, the next
// two a change of mail and of what counts as spam; by the last two nothing goes
// wrong with labels or the world, they are what a day's work brings.
var faults = []fault{
	{name: "5 % flips", meaning: "one label in twenty is wrong", of: flips(0.05)},
	{name: "10 % flips", meaning: "one in ten", of: flips(0.10)},
	{name: "20 % flips", meaning: "one in five", of: flips(0.20)},
	{
		name: "bad source", meaning: "half the labels of a source that gives a quarter of them are wrong",
		generator: func(cfg *synthetic.Config, at int) { cfg.BadFeedAt, cfg.BadFeedRate = at, badRate },
		of: func(w *world, r *rand.Rand) change {
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
		name: "new campaign", meaning: "three mails in ten are spam of an outbreak, in words that nobody has used (generator)",
		generator: func(cfg *synthetic.Config, at int) { cfg.CampaignAt = at },
		of: func(w *world, _ *rand.Rand) change {
			if w.set == nil {
				return keepAll
			}
			return nil
		},
	},
	{
		name: "new policy", meaning: "newsletters count as spam (generator); 20 columns mirrored, absent where it was present (vectors)",
		generator: func(cfg *synthetic.Config, at int) { cfg.PolicyAt = at },
		of:        policy,
	},
	{
		name: "class balance", meaning: "three spams in four stay away",
		of: func(_ *world, r *rand.Rand) change {
			return func(ex *model.Example) bool { return r.Float64() < keptSpam || !ex.Spam }
		},
	},
	{name: "rescaled", meaning: "all numbers times 3 (vectors); the text three times over (mail)", of: rescale},
}

func keepAll(*model.Example) bool { return true }

// flips returns the fault that labels are wrong at a rate, whosever they are.
func flips(rate float64) func(*world, *rand.Rand) change {
	return func(_ *world, r *rand.Rand) change {
		return func(ex *model.Example) bool {
			if r.Float64() < rate {
				ex.Spam = !ex.Spam
			}
			return true
		}
	}
}

// policy mirrors columns of a set of vectors: those that are there in one row in a
// hundred to one in two and not negative, as counts of words are. A column becomes
// 0 where it was not, and elsewhere a tenth of its greatest value, or that value
// itself if it has no other.
func policy(w *world, r *rand.Rand) change {
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

func rescale(*world, *rand.Rand) change {
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
