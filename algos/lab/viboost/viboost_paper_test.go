package viboost

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/boost"
)

func mustData(t testing.TB, x [][]float64) *boost.Data {
	t.Helper()
	d, err := boost.NewData(x)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustTrain(t testing.TB, d *boost.Data, y []float64, cfg Config) *Booster {
	t.Helper()
	b, err := New(d, y, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// drawSet returns rows on few levels, so that candidates tie, with labels of a
// noisy linear truth.
func drawSet(r *rand.Rand, rows, dim int) (x [][]float64, y []float64) {
	for range rows {
		row := make([]float64, dim)
		z := 0.7 * r.NormFloat64()
		for j := range row {
			row[j] = math.Round(3 * r.NormFloat64())
			z += row[j] / float64(1+2*j)
		}
		x = append(x, row)
		y = append(y, math.Copysign(1, z))
	}
	return x, y
}

// every is all combinations of the choices that the paper leaves open.
func every() iter.Seq2[string, Config] {
	return func(yield func(string, Config) bool) {
		for _, weighting := range []Weighting{Approximate, Exact, Mixed} {
			for _, types := range []TypeUpdate{Modal, Expectation} {
				name := []string{"approx", "exact", "mixed"}[weighting] + "/" + []string{"modal", "expectation"}[types]
				if !yield(name, Config{Weighting: weighting, Types: types}) {
					return
				}
			}
		}
	}
}

// Reference: algorithm 1, eqs. 17, 73, 74, 79, 82, 83, 91 and FIT's conventions,
// against the plain implementation, in every mode and with other priors, τ and
// sample weights.
func TestBoosterIsAlgorithm1(t *testing.T) {
	for name, cfg := range every() {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			for k := range 4 {
				x, y := drawSet(r, 12+6*k, 3)
				cfg := cfg
				cfg.Rounds, cfg.Inner, cfg.Bound = 6, 1+2*k, true
				if k > 0 {
					cfg.Tau = []float64{0.5, 2, 1}[k-1]
					cfg.Prior = Prior{Mu0: 0.4 + r.Float64(), Mu0Prime: 0.2 + r.Float64(), Zeta: [2]float64{2 * r.Float64(), 0.3}}
				}
				if k == 3 {
					for range y {
						cfg.Weights = append(cfg.Weights, []float64{0, 0.5, 1, 3}[r.IntN(4)])
					}
				}
				b := mustTrain(t, mustData(t, x), y, cfg)
				p := newPlain(x, y, cfg)
				for n, got := range b.Rounds() {
					if !p.round() {
						t.Fatalf("%d rounds, want %d", len(b.Rounds()), n)
					}
					want := p.rounds[n]
					if got.Stump != want.Stump {
						t.Fatalf("round %d: stump %v, want %v", n, got.Stump, want.Stump)
					}
					for _, v := range []struct {
						what      string
						got, want float64
					}{
						{"alpha", got.Alpha, want.Alpha}, {"omega 1", got.Omega[0], want.Omega[0]}, {"omega 2", got.Omega[1], want.Omega[1]},
						{"eta 1", got.Eta[0], want.Eta[0]}, {"eta 2", got.Eta[1], want.Eta[1]}, {"log norm", got.LogNorm, want.LogNorm},
						{"ELBO", got.ELBO, want.ELBO}, {"train error", got.TrainError, want.TrainError},
						{"SNR", got.SNR(), want.Eta[0] / want.Eta[1]}, {"noise grade", got.NoiseGrade(), math.Log(want.Omega[1] / want.Omega[0])},
					} {
						near(t, fmt.Sprintf("round %d: %s", n, v.what), v.got, v.want, 1e-9*(1+math.Abs(v.want)))
					}
				}
				phi, H := make([]float64, len(y)), make([]float64, len(y))
				b.PhiTo(phi)
				b.LogOddsTo(H)
				e := b.Ensemble()
				for i := range y {
					near(t, "φ", phi[i], p.phi[i], 1e-9)
					near(t, "H", H[i], p.H[i], 1e-9*(1+math.Abs(p.H[i])))
					if got := e.LogOdds(x[i]); got != H[i] {
						t.Errorf("the ensemble's log-odds of row %d are %v, in training %v", i, got, H[i])
					}
				}
			}
		})
	}
}

// Reference: section 6, eq. 18: in the first round with μ₀ = τ = 1 the weight is
// ½ ln((1/Z+1−ε)/(1/Z+ε)), with Z the exponential loss.
func TestFirstWeightIsSmoothedAdaBoost(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	x, y := drawSet(r, 40, 4)
	d := mustData(t, x)
	b := mustTrain(t, d, y, Config{Rounds: 1, Inner: 1})
	last, _ := b.Last()
	ε := 0.0
	for i := range x {
		if last.Stump.Value(x[i]) != y[i] {
			ε += 1.0 / 40
		}
	}
	near(t, "α", last.Alpha, math.Log((1.0/40+1-ε)/(1.0/40+ε))/2, 1e-14)
}

// Reference: section 6: without the noise model (labels known to be true) and
// without the prior's phantom examples, VIBoost with τ = 1 is AdaBoost: the same
// stumps and the same weights, signs included.
func TestWithoutNoiseAndPriorItIsAdaBoost(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	x, y := drawSet(r, 200, 5)
	d := mustData(t, x)
	a, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: 30})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := mustTrain(t, d, y, Config{Rounds: 30, Prior: Prior{Mu0: 1e-60, Zeta: [2]float64{1e60, 1e-60}}})
	for n, got := range b.Rounds() {
		want := a.Rounds()[n]
		if got.Stump.Feature != want.Stump.Feature || got.Stump.Threshold != want.Stump.Threshold {
			t.Fatalf("round %d: %v, AdaBoost takes %v", n, got.Stump, want.Stump)
		}
		near(t, fmt.Sprintf("α of round %d", n), got.Alpha, want.Alpha*float64(want.Stump.Polarity), 1e-9)
	}
}

// Reference: section 5: with E_c by quadrature every pass is coordinate ascent, so
// that the ELBO never falls as passes are added, whatever weights the modes give;
// with the mode in its place it may.
func TestPassesRaiseTheELBO(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	fell := 0
	for range 10 {
		x, y := drawSet(r, 25, 3)
		for i := range y {
			if r.IntN(6) == 0 {
				y[i] = -y[i]
			}
		}
		d := mustData(t, x)
		for _, types := range []TypeUpdate{Expectation, Modal} {
			last := math.Inf(-1)
			for inner := 1; inner <= 12; inner++ {
				b := mustTrain(t, d, y, Config{Rounds: 1, Inner: inner, Types: types, Bound: true})
				got, _ := b.Last()
				if got.ELBO < last-1e-10 {
					if types == Expectation {
						t.Errorf("ELBO %v after %d passes, %v after one less", got.ELBO, inner, last)
					}
					fell++
				}
				last = got.ELBO
			}
		}
	}
	t.Logf("with the mode in place of the expectation it fell %d times in 110", fell)
}

// Reference: FIT and section 6: a sample weight counts the example that often.
func TestWeightsRepeatRows(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	x, y := drawSet(r, 30, 3)
	var xx [][]float64
	var yy, weights []float64
	for i := range x {
		n := r.IntN(4)
		weights = append(weights, float64(n))
		for range n {
			xx, yy = append(xx, x[i]), append(yy, y[i])
		}
	}
	// A row of weight 0 keeps its thresholds, and so do rows of no example.
	for i := range x {
		xx, yy = append(xx, x[i]), append(yy, y[i])
		_ = i
	}
	ones := make([]float64, len(xx))
	for i := range len(xx) - len(x) {
		ones[i] = 1
	}
	a := mustTrain(t, mustData(t, x), y, Config{Rounds: 8, Weights: weights, Bound: true})
	b := mustTrain(t, mustData(t, xx), yy, Config{Rounds: 8, Weights: ones, Bound: true})
	for n, got := range a.Rounds() {
		want := b.Rounds()[n]
		if got.Stump != want.Stump {
			t.Fatalf("round %d: %v, want %v", n, got.Stump, want.Stump)
		}
		near(t, "α", got.Alpha, want.Alpha, 1e-12)
		near(t, "η₁", got.Eta[0], want.Eta[0], 1e-10)
		near(t, "ω₂", got.Omega[1], want.Omega[1], 1e-10)
		near(t, "ELBO", got.ELBO, want.ELBO, 1e-9)
		near(t, "train error", got.TrainError, want.TrainError, 1e-12)
	}
}
