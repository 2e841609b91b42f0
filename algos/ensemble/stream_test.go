package ensemble

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/blr"
	"hamlet/algos/eval"
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
)

// A track is a prequential run of a head over a shuffled spambase: what the stacker
// and the window take of every event, predicted before it is learnt.
type track struct {
	x      [][]float64 // 57 signed logarithms
	truth  []float64   // ±1
	labels []float64   // as given: a share of them is flipped
	m, a   []float64   // the head's moments
	φ      []float64   // label trust
}

// newTrack runs head A: 1 and the inputs standardised by their running moments,
// clipped at ±8, prior variance .3, R-VGA, the likelihood raised to the label trust.
func newTrack(t testing.TB, seed uint64, flip float64) *track {
	x, y := dataset.ShuffledSpambase(t, seed)
	const d = 57
	s := feature.NewStandardiser(d)
	cfg := blr.Config{Dim: d + 1}
	for range cfg.Dim {
		cfg.Precision = append(cfg.Precision, 1/.3)
	}
	head, err := blr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 3))
	k := &track{x: x, truth: y}
	in := make([]float64, d+1)
	in[0] = 1
	ε := 0.1
	for n, row := range x {
		label := y[n]
		if r.Float64() < flip {
			label = -label
		}
		s.Standardise(in[1:], row)
		m, a := head.Moments(in)
		q := logistic.Sigmoid(label * blr.Moderate(m, a))
		φ := max(1e-12, (1-ε)*q/((1-ε)*q+ε*(1-q)))
		ε = max(0.0003, ε+max(0.01, 1/float64(n+50))*(1-φ-ε))
		k.labels, k.m, k.a, k.φ = append(k.labels, label), append(k.m, m), append(k.a, a), append(k.φ, φ)
		head.Update(in, label, φ)
		s.Observe(row)
	}
	return k
}

// window returns the last W events before event count.
func (k *track) window(count, most int) *Window {
	from := max(0, count-most)
	w := &Window{Dim: len(k.x[0]), Labels: k.labels[from:count], Weights: k.φ[from:count]}
	for _, row := range k.x[from:count] {
		for _, v := range row {
			w.Inputs = append(w.Inputs, float32(v))
		}
	}
	return w
}

// A builder makes log-odds of a window; nil if it cannot.
type builder func(w *Window) func(x []float64) float64

// stack scores the track by the stacker over A and one ensemble, rebuilt at every
// 500th event from the last 2,000, before the first 500 at every 50th, and taking
// effect at the next such count. fastest is what the rebuild took that took the
// least of those from a full window.
func (k *track) stack(t testing.TB, build builder) (s eval.Summary, fastest time.Duration) {
	const window, period, early, clip = 2000, 500, 50, 6
	b, err := blr.New(blr.Config{
		Dim: 3, Mean: []float64{0, .5, .5}, Precision: []float64{1 / .1, 1 / .25, 1 / .25},
		HalfLife: math.Ln2 / -math.Log(.995),
	})
	if err != nil {
		t.Fatal(err)
	}
	metrics := eval.New()
	var served, next func(x []float64) float64
	mean := make([]float64, 3)
	fastest = math.MaxInt64
	for n, x := range k.x {
		if n > 0 && (n%period == 0 || n < period && n%early == 0) {
			if next != nil {
				served = next
			}
			if build != nil {
				w := k.window(n, window)
				start := time.Now()
				next = build(w)
				if n >= window {
					fastest = min(fastest, time.Since(start))
				}
			}
		}
		if served == nil {
			metrics.Add(k.truth[n] > 0, blr.Moderate(k.m[n], k.a[n]))
			continue
		}
		in := []float64{1, k.m[n], min(max(served(x), -clip), clip)}
		m, a := b.Moments(in)
		b.MeanTo(mean)
		metrics.Add(k.truth[n] > 0, blr.Moderate(m, a+mean[1]*mean[1]*k.a[n]))
		b.Update(in, k.labels[n], k.φ[n])
	}
	return metrics.Summary(), fastest
}

// of returns the builder of a kind.
func of(t testing.TB, kind Kind) builder {
	return func(w *Window) func(x []float64) float64 {
		r := Build(t.Context(), []Kind{kind}, w)[0]
		if r.Err != nil {
			t.Logf("%v", r.Err)
			return nil
		}
		return r.Ensemble.LogOdds
	}
}

// A tracked is the tracks of several shuffles at several rates of flips.
type tracked [][]*track

var flipRates = []float64{0, .05, .1}

func newTracked(t testing.TB, seeds ...uint64) tracked {
	all := make(tracked, len(flipRates))
	for f, flip := range flipRates {
		for _, seed := range seeds {
			all[f] = append(all[f], newTrack(t, seed, flip))
		}
	}
	return all
}

// row measures a builder and returns its row of the table.
func (all tracked) row(t testing.TB, build builder) string {
	var cells []string
	fastest := time.Duration(math.MaxInt64)
	for _, tracks := range all {
		var roca, loss, wrong float64
		for _, k := range tracks {
			s, took := k.stack(t, build)
			roca, loss, wrong = roca+float64(s.ROCA), loss+float64(s.LogLoss), wrong+float64(s.Error)
			fastest = min(fastest, took)
		}
		n := float64(len(tracks))
		cells = append(cells, fmt.Sprintf("%.2f / %.4f / %.2f", roca/n, loss/n, 100*wrong/n))
	}
	if build == nil {
		return strings.Join(cells, "   ")
	}
	return fmt.Sprintf("%s   %.0f", strings.Join(cells, "   "), float64(fastest.Microseconds())/500)
}

// The table of MEASURED.md: every kind behind the stacker on three shuffles of
// spambase, clean and with 5 and 10 % of the labels flipped. 1-ROCA% / log loss /
// error % on true labels; the last column is µs an event at R = 500, of the fastest
// of the rebuilds from full windows, since the machine is shared.
func BenchmarkSpambaseTable(b *testing.B) {
	for b.Loop() {
		all := newTracked(b, 1, 2, 3)
		table := fmt.Sprintf("%-14s%s\n", "A alone", all.row(b, nil))
		for _, k := range Kinds() {
			table += fmt.Sprintf("%-14s%s\n", k, all.row(b, of(b, k)))
		}
		b.Logf("\n%s", table)
	}
}
