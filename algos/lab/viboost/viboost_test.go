package viboost

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"hamlet/algos/boost"
	"hamlet/algos/viboost"
)

// finite fails unless everything that b reports is a number.
func finite(t *testing.T, b *Booster, n int) {
	t.Helper()
	phi, H := make([]float64, n), make([]float64, n)
	b.PhiTo(phi)
	b.LogOddsTo(H)
	for i := range phi {
		if !(phi[i] >= 0 && phi[i] <= 1) || !(math.Abs(H[i]) <= math.MaxFloat64) {
			t.Fatalf("φ %v, H %v of row %d", phi[i], H[i], i)
		}
	}
	for k, r := range b.Rounds() {
		for _, v := range []float64{r.Alpha, r.SNR(), r.NoiseGrade(), r.ELBO, r.LogNorm, r.TrainError} {
			if !(math.Abs(v) <= math.MaxFloat64) {
				t.Fatalf("round %d: %+v", k, r)
			}
		}
	}
}

func column(v ...float64) (x [][]float64) {
	for _, a := range v {
		x = append(x, []float64{a, 5})
	}
	return x
}

// What is degenerate gets an answer in every mode, never a NaN.
func TestDegenerateSets(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 20))
	big, labels := drawSet(r, 60, 3)
	cases := []struct {
		name string
		x    [][]float64
		y    []float64
		cfg  Config
		stop boost.Stop
	}{
		{"one row", column(3), []float64{1}, Config{}, boost.NoCandidate},
		{"constant features", column(3, 3, 3), []float64{1, -1, 1}, Config{}, boost.NoCandidate},
		{"one class", column(1, 2, 3, 4), []float64{1, 1, 1, 1}, Config{}, boost.Rounds},
		{"two rows", column(1, 2), []float64{-1, 1}, Config{}, boost.Rounds},
		{"duplicate rows of both labels", column(1, 1, 2, 2), []float64{-1, 1, -1, 1}, Config{}, boost.Rounds},
		{"perfectly separable", column(1, 2, 3, 4), []float64{-1, -1, 1, 1}, Config{}, boost.Rounds},
		{"the majority is the best rule", column(1, 2, 3), []float64{1, 1, -1}, Config{}, boost.Rounds},
		{"huge prior", big, labels, Config{Prior: Prior{Mu0: 1e80, Mu0Prime: 1e80, Zeta: [2]float64{1e80, 1e-80}}}, boost.Rounds},
		{"no prior", big, labels, Config{Prior: Prior{Mu0: 1e-80, Mu0Prime: 1e-80, Zeta: [2]float64{1e-80, 1e-80}}}, boost.Rounds},
		{"all believed noise", big, labels, Config{Prior: Prior{Zeta: [2]float64{1e-80, 1e80}}}, boost.Rounds},
		{"smallest τ", big, labels, Config{Tau: 1e-6}, boost.Rounds},
		{"largest τ", big, labels, Config{Tau: 1e6}, boost.Rounds},
		{"one row counts", big, labels, Config{Weights: append([]float64{1e6}, make([]float64, 59)...)}, boost.Rounds},
	}
	for _, c := range cases {
		for name, mode := range every() {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				cfg := c.cfg
				cfg.Weighting, cfg.Types, cfg.Bound, cfg.Rounds, cfg.Inner = mode.Weighting, mode.Types, true, 4, 3
				b := mustTrain(t, mustData(t, c.x), c.y, cfg)
				if b.Stopped() != c.stop {
					t.Errorf("stopped: %v, want %v", b.Stopped(), c.stop)
				}
				finite(t, b, len(c.y))
				if p := b.Ensemble().Prob(c.x[0]); !(p >= 0 && p <= 1) {
					t.Errorf("probability %v", p)
				}
			})
		}
	}
}

// Log-odds of ±800 and beyond, which no exponential holds, in a round and a stage.
// There is one candidate: among weights of e⁻⁸⁰⁰ to e⁸⁰⁰ the search calls equal what
// the logarithms in the modes can tell apart.
func TestKnotsFarOut(t *testing.T) {
	x, y := drawSet(rand.New(rand.NewPCG(21, 21)), 30, 1)
	for i := range x {
		x[i][0] = math.Copysign(1, x[i][0])
	}
	for name, cfg := range every() {
		r := rand.New(rand.NewPCG(21, 22)) // each mode the same draws, whichever comes first
		for _, scale := range []float64{200, 800, 1e5} {
			cfg.Rounds, cfg.Inner, cfg.Bound = 2, 2, true
			for _, τ := range []float64{0.5, 1} {
				cfg.Tau = τ
				b, err := New(mustData(t, x), y, cfg)
				if err != nil {
					t.Fatal(err)
				}
				p := newPlain(x, y, cfg)
				for i := range y {
					H := scale * r.NormFloat64()
					b.stage.Before[i], p.H[i] = H, H
				}
				for k := range cfg.Rounds {
					b.Round()
					p.round()
					got, _ := b.Last()
					want := p.rounds[k]
					if got.Stump != want.Stump {
						t.Fatalf("%s, H of %v: round %d takes %v, want %v", name, scale, k, got.Stump, want.Stump)
					}
					if scale == 800 {
						// Some φ are subnormal, with few digits, and e^(−τyH) makes them
						// count: the oracle has no digits to compare, finite must do.
						continue
					}
					const tolerance = 1e-9
					near(t, fmt.Sprintf("%s, H of %v: α", name, scale), got.Alpha, want.Alpha, tolerance*(1+math.Abs(want.Alpha)))
					near(t, "η₁", got.Eta[0], want.Eta[0], tolerance*10)
				}
				finite(t, b, len(y))
			}
		}
	}
	for _, before := range [][]float64{{800, -800, 800}, {-800, -800, 800}, {1e5, -1e5, 0}} {
		fit, err := Infer(t.Context(), Prior{}, []float64{1, -1, -1}, []float64{1, 1, -1}, before)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range append([]float64{fit.ELBO}, fit.Phi...) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("H = %v: ELBO %v, φ %v", before, fit.ELBO, fit.Phi)
			}
		}
	}
}

func TestConfigNamesEveryField(t *testing.T) {
	d := mustData(t, column(1, 2))
	_, err := New(d, []float64{1, 0}, Config{
		Prior:  Prior{Mu0: -1, Mu0Prime: math.NaN(), Zeta: [2]float64{math.Inf(1), -1}},
		Rounds: -1, Inner: -1, Tau: -1, Weighting: 9, Types: 9, Weights: []float64{1e7, -1},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"mu0 is", "mu0_prime", "zeta[0]", "zeta[1]", "rounds", "inner", "tau", "weighting 9", "type update 9", "sample weight 0", "weight 1 is -1", "label 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
	if _, err := Infer(t.Context(), Prior{Mu0: -1}, []float64{1, 3}, []float64{1, 0}, []float64{0, math.Inf(1)}); err == nil ||
		!strings.Contains(err.Error(), "mu0") || !strings.Contains(err.Error(), "label 1") || !strings.Contains(err.Error(), "h[1]") || !strings.Contains(err.Error(), "log-odds 1") {
		t.Errorf("Infer: error %q", err)
	}
	if _, err := Gibbs(t.Context(), GibbsConfig{Sweeps: -1, BurnIn: -1}, [][]float64{{1, 2}}, []float64{1, 1}, rand.NewPCG(1, 1)); err == nil ||
		!strings.Contains(err.Error(), "sweeps") || !strings.Contains(err.Error(), "burn-in") || !strings.Contains(err.Error(), "f[0][1]") {
		t.Errorf("Gibbs: error %q", err)
	}
}

// A round allocates nothing, in no mode, once the nodes are there.
func TestRoundAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	x, y := drawSet(r, 80, 4)
	for name, cfg := range every() {
		for _, bound := range []bool{false, true} {
			cfg.Bound, cfg.Inner, cfg.Rounds = bound, 2, 1000
			b, err := New(mustData(t, x), y, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				b.Round()
			}
			if n := testing.AllocsPerRun(10, func() { b.Round() }); n != 0 {
				t.Errorf("%s, bound %v: %v allocations a round", name, bound, n)
			}
		}
	}
}

// Cancelled training stops between rounds, keeps what it has, and may go on.
func TestCancelledBetweenRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 23))
	x, y := drawSet(r, 40, 3)
	d := mustData(t, x)
	b, err := New(d, y, Config{Rounds: 20})
	if err != nil {
		t.Fatal(err)
	}
	for range 7 {
		b.Round()
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := b.Train(ctx); !errors.Is(err, cause) || len(b.Rounds()) != 7 {
		t.Fatalf("cancelled: error %v after %d rounds", err, len(b.Rounds()))
	}
	if err := b.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, _ := b.Ensemble().AppendBinary(nil)
	want, _ := mustTrain(t, d, y, Config{Rounds: 20}).Ensemble().AppendBinary(nil)
	if !bytes.Equal(got, want) {
		t.Error("an interrupted training ends elsewhere")
	}
	if _, err := Infer(ctx, Prior{}, y, y, y); !errors.Is(err, cause) {
		t.Errorf("Infer: error %v", err)
	}
	if _, err := Gibbs(ctx, GibbsConfig{}, [][]float64{y}, y, rand.NewPCG(1, 1)); !errors.Is(err, cause) {
		t.Errorf("Gibbs: error %v", err)
	}
}

// Quantised columns with all distinct values, and columns in order, give the same
// ensemble to the last bit.
func TestBinsGiveTheSameEnsemble(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 24))
	for name, cfg := range every() {
		x, y := drawSet(r, 60, 4)
		cfg.Rounds, cfg.Inner = 10, 2
		q, err := boost.Quantise(x, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := mustTrain(t, mustData(t, x), y, cfg).Ensemble().AppendBinary(nil)
		b, _ := mustTrain(t, q, y, cfg).Ensemble().AppendBinary(nil)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: bins and order give different ensembles", name)
		}
	}
}

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

// The bytes are a format and the model the same on every CPU. The golden file is
// made by `go test ./algos/lab/viboost -run Golden -update`; try it with
// GODEBUG=cpu.fma=off.
func TestGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 25))
	var x [][]float64
	var y []float64
	for range 100 {
		row := []float64{r.Float64(), r.Float64(), float64(r.IntN(5))}
		x, y = append(x, row), append(y, float64(2*r.IntN(2)-1))
		if row[0] > 0.5 {
			y[len(y)-1] = 1
		}
	}
	var got []byte
	for _, cfg := range []Config{{}, {Tau: 0.5}, {Weighting: Exact, Types: Expectation}} {
		cfg.Rounds = 10
		got, _ = mustTrain(t, mustData(t, x), y, cfg).Ensemble().AppendBinary(got)
	}
	const name = "testdata/ensembles_v1.bin"
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bytes of three ensembles differ from %s", name)
	}
}

// Reference: the defaults, which the product's Booster has alone.
func TestProductHasTheDefaults(t *testing.T) {
	x, y := drawSet(rand.New(rand.NewPCG(26, 26)), 80, 4)
	weights := make([]float64, len(y))
	for i := range weights {
		weights[i] = float64(i%4) / 2
	}
	want := mustTrain(t, mustData(t, x), y, Config{Rounds: 20, Inner: 5, Weights: weights})
	b, err := viboost.New(mustData(t, x), y, viboost.Config{Rounds: 20, Inner: 5, Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	for k, w := range want.Rounds() {
		b.Round()
		got, _ := b.Last()
		if got.Stump != w.Stump || got.Alpha != w.Alpha || got.Omega != w.Omega || got.Eta != w.Eta {
			t.Fatalf("round %d: %+v, want %+v", k, got, w)
		}
	}
}
