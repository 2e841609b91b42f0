package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/blr"
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// An item is an event of a test stream before it meets a head.
type item struct {
	x      []float64 // raw
	label  float64
	source string
}

// A rig joins the alarms as a model does: head A never forgets and feeds the
// covariate and the concept alarm, head B has ρ = .998 and yields φ and ε; both
// take sign-logs, standardised as they come, the noise watch the sign-logs.
type rig struct {
	scale   *feature.Standardiser
	a, b    *blr.Posterior
	x, z    []float64
	ε       float64
	count   uint64
	result  Result
	noise   *LabelNoise
	world   *PageHinkley
	mail    *Covariate
	losses  float64
	changes []change
}

// A change is one change of an alarm's state.
type change struct {
	alarm  string
	raised bool
	at     uint64
}

func mustNew[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newHead(d int, halfLife float64) *blr.Posterior {
	precision := make([]float64, d+1)
	for i := range precision {
		precision[i] = 1 / 0.3
	}
	return mustNew(blr.New(blr.Config{Dim: d + 1, Precision: precision, HalfLife: halfLife}))
}

func newRig(d int) *rig {
	return &rig{
		scale: feature.NewStandardiser(d),
		a:     newHead(d, 0), b: newHead(d, -math.Ln2/math.Log(.998)),
		x: make([]float64, d), z: make([]float64, d+1), ε: .1,
		noise: mustNew(NewLabelNoise(LabelNoiseConfig{Dim: d})),
		world: mustNew(NewPageHinkley(PageHinkleyConfig{})),
		mail:  mustNew(NewCovariate(CovariateConfig{})),
	}
}

func (r *rig) note(alarm string, changed, raised bool) {
	if changed {
		r.changes = append(r.changes, change{alarm, raised, r.count})
	}
}

// event applies one item, and the SNR of a job where it was started, as though it
// had been computed meanwhile.
func (r *rig) event(it item) {
	for j, v := range it.x {
		r.x[j] = feature.SignedLog(v)
	}
	r.z[0] = 1
	r.scale.Standardise(r.z[1:], r.x)
	m, a := r.a.Moments(r.z)
	loss := -logistic.LogSigmoid(it.label * blr.Moderate(m, a))
	q := logistic.Sigmoid(it.label * blr.Moderate(r.b.Moments(r.z)))
	φ := (1 - r.ε) * q / ((1-r.ε)*q + r.ε*(1-q))
	r.ε = max(.0003, r.ε+max(.01, 1/(float64(r.count)+50))*(1-φ-r.ε))
	r.a.Update(r.z, it.label, 1)
	r.b.Update(r.z, it.label, 1)
	r.scale.Observe(r.x)
	r.count++
	r.losses += loss

	r.note("concept", r.world.Observe(r.count, loss), r.world.raised)
	r.note("covariate", r.mail.Observe(r.count, a), r.mail.raised)
	r.noise.Observe(Event{X: r.x, Label: it.label, Prob: q, FlipRate: r.ε, ID: fmt.Sprint(r.count), Source: it.source})
	if r.count%Rhythm != 0 {
		return
	}
	if _, ok := r.noise.Pending(); ok {
		r.noise.Finish(r.result)
	}
	r.note("noise", r.noise.Check(r.count), r.noise.raised)
	if job, ok := r.noise.Start(r.count); ok {
		r.result = job.Run()
	}
}

// first returns when the alarm was first raised after the event count after.
func (r *rig) first(alarm string, after uint64) (uint64, bool) {
	for _, c := range r.changes {
		if c.alarm == alarm && c.raised && c.at > after {
			return c.at, true
		}
	}
	return 0, false
}

// readSpambase reads spambase in the file's order, raw.
func readSpambase(tb testing.TB) (items []item) {
	tb.Helper()
	x, y := dataset.Spambase(tb)
	for i := range x {
		items = append(items, item{x: x[i], label: y[i]})
	}
	return items
}

const (
	faultAt     = 2_600
	wordColumns = 48 // the first of spambase's: percentages of words
)

// A fault changes a stream from event faultAt on: items in order, those of after
// to be replaced or dropped.
type fault func(r *rand.Rand, all, after []item) []item

func none(_ *rand.Rand, _, after []item) []item { return after }

func flips(rate float64, only float64) fault {
	return func(r *rand.Rand, _, after []item) []item {
		for i := range after {
			if r.Float64() < rate && (only == 0 || after[i].label == only) {
				after[i].label = -after[i].label
			}
		}
		return after
	}
}

// onColumns gives n word columns, drawn, to f, with their maxima.
func onColumns(n int, f func(v, most float64) float64) fault {
	return func(r *rand.Rand, all, after []item) []item {
		for _, j := range r.Perm(wordColumns)[:n] {
			most := 0.0
			for _, it := range all {
				most = max(most, it.x[j])
			}
			for i := range after {
				after[i].x[j] = f(after[i].x[j], most)
			}
		}
		return after
	}
}

func mirror(v, most float64) float64 {
	if v > 0 {
		return 0
	}
	return most / 10
}

func scaled(by float64) fault {
	return func(_ *rand.Rand, _, after []item) []item {
		for i := range after {
			for j := range after[i].x {
				after[i].x[j] *= by
			}
		}
		return after
	}
}

// prior keeps one in four of the given label and repeats the rest, in a new order,
// until the stream is as long as before.
func prior(label float64) fault {
	return func(r *rand.Rand, _, after []item) []item {
		kept := after[:0:0]
		for len(kept) < len(after) {
			it := after[r.IntN(len(after))]
			if it.label != label || r.Float64() < .25 {
				kept = append(kept, item{x: append([]float64(nil), it.x...), label: it.label, source: it.source})
			}
		}
		return kept
	}
}

// spambaseStream returns spambase in a seeded order with a fault.
func spambaseStream(tb testing.TB, seed uint64, f fault) []item {
	tb.Helper()
	all := readSpambase(tb)
	r := rand.New(rand.NewPCG(seed, 6))
	stream := make([]item, len(all))
	for i, k := range r.Perm(len(all)) {
		stream[i] = item{x: append([]float64(nil), all[k].x...), label: all[k].label, source: "feed"}
	}
	return append(stream[:faultAt:faultAt], f(r, stream, stream[faultAt:])...)
}

var spambaseTable = []struct {
	name string
	f    fault
}{
	{"clean", none},
	{"5 % flips", flips(.05, 0)},
	{"10 % flips", flips(.10, 0)},
	{"20 % flips", flips(.20, 0)},
	{"20 mirrored columns", onColumns(20, mirror)},
	{"a quarter of the spam", prior(1)},
	{"a quarter of the ham", prior(-1)},
	{"inputs × 3", scaled(3)},
	{"inputs × ⅓", scaled(1. / 3)},
	{"20 columns vanish", onColumns(20, func(float64, float64) float64 { return 0 })},
}
