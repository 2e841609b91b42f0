package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

func nearly(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
		t.Errorf("%s = %v, want %v to %g", what, got, want, tolerance)
	}
}

// The two-term case has closed forms (section S.1.1): a logit of a Beta.
func TestVLogOfTwoTerms(t *testing.T) {
	r := reply[vLogReply](t, requestLine(t, "vlog", "beta", []float64{2, -2}, "gamma", []float64{1, 1}, "mu", []float64{3, 5},
		"z", []float64{1, 1.3}, "tau", []float64{0.5, 1}))
	B := math.Gamma(3) * math.Gamma(5) / math.Gamma(8)
	nearly(t, "log_norm", r.LogNorm, math.Log(B/2), 1e-13)
	nearly(t, "mode", r.Mode, 1+math.Log(5./3)/2, 1e-13)
	nearly(t, "mean", r.Mean, 1+(1./3+1./4)/2, 1e-13) // ψ(5) − ψ(3)
	nearly(t, "variance", r.Variance, (mathext.Zeta(2, 3)+mathext.Zeta(2, 5))/4, 1e-13)
	for i, z := range []float64{1, 1.3} {
		v := 1 / (1 + math.Exp(2*(z-1)))
		nearly(t, "log_pdf", r.LogPDF[i], math.Log(2*math.Pow(v, 3)*math.Pow(1-v, 5)/B), 1e-12)
		nearly(t, "cdf", r.CDF[i], 1-mathext.RegIncBeta(3, 5, v), 1e-9)
	}
	nearly(t, "approx_mode, τ = ½", r.ApproxMode[0], r.Mode, 1e-13)
	nearly(t, "approx_mode, τ = 1", r.ApproxMode[1], 1+math.Log(5./3)/4, 1e-13)
	if r := reply[vLogReply](t, requestLine(t, "vlog", "beta", []float64{2, -1}, "gamma", []float64{1, 1}, "mu", []float64{3, 5}, "z", []float64{0})); r.ApproxMode != nil {
		t.Errorf("approx_mode %v for slopes of two magnitudes", r.ApproxMode)
	}
}

// Kolmogorov and Smirnov, level 0.001.
func TestVLogSamplesFollowTheCDF(t *testing.T) {
	parameters := []any{"beta", []float64{1, -1, -1, 1}, "gamma", []float64{0, 0, 2, -30}, "mu", []float64{1, 1, 4, 0.5}}
	const n = 5000
	s := reply[vLogSampleReply](t, requestLine(t, "vlog.sample", append(slices.Clone(parameters), "n", n, "seed", 5)...)).Samples
	slices.Sort(s)
	cdf := reply[vLogReply](t, requestLine(t, "vlog", append(parameters, "z", s)...)).CDF
	worst := 0.0
	for i, u := range cdf {
		worst = max(worst, u-float64(i)/n, float64(i+1)/n-u)
	}
	if worst*math.Sqrt(n) > 1.9495 {
		t.Errorf("√n·D = %v, above the level of 0.001", worst*math.Sqrt(n))
	}
}

// drawLabelled returns rows whose first feature explains the labels, except for noise.
func drawLabelled(seed uint64, n int) (x [][]float64, y []float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		row := []float64{r.NormFloat64(), r.NormFloat64(), float64(r.IntN(3))}
		x, y = append(x, row), append(y, math.Copysign(1, row[0]+0.7*r.NormFloat64()))
	}
	return x, y
}

// The values in a round of viboost satisfy eqs. 17, 82, 83 and 91, and p_test is σ of
// the log-odds.
func TestVIBoostReplyFitsTogether(t *testing.T) {
	const n = 30
	x, y := drawLabelled(1, n)
	for _, mode := range []string{"approx", "exact", "mixed"} {
		for _, types := range []string{"mode", "exact"} {
			r := reply[struct {
				viBoostReply
				PTest []float64 `json:"p_test"`
			}](t, requestLine(t, "viboost", "x", x, "y", y, "x_test", x, "rounds", 3, "inner", 4, "mode", mode, "type_update", types, "mu0_prime", 0.5, "zeta", []float64{2, 0.5}))
			last := r.Rounds[len(r.Rounds)-1]
			var sum, fresh [2]float64
			entropy := 0.0
			for i, p := range r.Phi {
				sum[0] += p
				sum[1] += 1 - p
				fresh[int(1+y[i])/2] += 1 - p
				entropy -= p*math.Log(p) + (1-p)*math.Log(1-p)
			}
			ω, η := last.Omega, last.Eta
			what := func(s string) string { return fmt.Sprintf("%s/%s: %s", mode, types, s) }
			nearly(t, what("η₁"), η[0], 2+sum[0], 1e-12)
			nearly(t, what("η₂"), η[1], 0.5+sum[1], 1e-12)
			lbeta := func(a, b float64) float64 {
				u, _ := math.Lgamma(a)
				v, _ := math.Lgamma(b)
				w, _ := math.Lgamma(a + b)
				return u + v - w
			}
			stale := [2]float64{ω[0] - 0.5 - fresh[0], ω[1] - 0.5 - fresh[1]}
			elbo := last.LogNorm + lbeta(ω[0], ω[1]) + lbeta(η[0], η[1]) + entropy +
				(stale[0]+stale[1])*mathext.Digamma(ω[0]+ω[1]) - stale[0]*mathext.Digamma(ω[0]) - stale[1]*mathext.Digamma(ω[1])
			nearly(t, what("elbo"), last.ELBO, elbo, 1e-9)
			nearly(t, what("snr"), last.SNR, η[0]/η[1], 1e-14)
			nearly(t, what("noise grade"), last.NoiseGrade, math.Log(ω[1]/ω[0]), 1e-14)
			for i := range x {
				H := 0.0
				for _, o := range r.Rounds {
					if x[i][o.Feature] > o.Threshold {
						H += o.Alpha
					} else {
						H -= o.Alpha
					}
				}
				nearly(t, what("h"), r.H[i], H, 1e-12)
				nearly(t, what("p_test"), r.PTest[i], 1/(1+math.Exp(-H)), 1e-12)
			}
		}
	}
}

// The stage of N = 1 with h = y, H = 0 and all priors flat, by hand: q(w) = ½ is
// the fixed point, and the label is as probable as not.
func TestVIBoostStageOfOneLabel(t *testing.T) {
	r := reply[viBoostStageReply](t, `{"algorithm": "viboost.stage", "y": [1], "h": [1], "h_prev": [0]}`)
	nearly(t, "φ", r.Phi[0], 0.5, 1e-12)
	if r.ELBO > math.Log(0.5) {
		t.Errorf("ELBO %v above the log evidence ln ½", r.ELBO)
	}
	if last := r.ELBOTrace[len(r.ELBOTrace)-1]; last != r.ELBO {
		t.Errorf("elbo %v, the trace ends with %v", r.ELBO, last)
	}
}

// One label, flat priors: by symmetry θ, w and the rest are known.
func TestGibbsOfOneLabel(t *testing.T) {
	r := reply[gibbsReply](t, `{"algorithm": "gibbs", "f": [[1]], "y": [1], "sweeps": 40000}`)
	// P(y=+1) is ½ whether the label is true or not, so w and θ keep their priors;
	// c given w = 1 is v-Log([1,−1,−1], 0, 1), of mean ψ(2)−ψ(1) = 1, else of mean 0;
	// so is ξ given w = 0.
	for what, v := range map[string][2]float64{"θ": {r.Theta, 0.5}, "w": {r.W[0], 0.5}, "c": {r.C[0], 0.5}, "ξ": {r.Xi, 0.5}} {
		if math.Abs(v[0]-v[1]) > 0.05 {
			t.Errorf("mean of %s is %v, want %v", what, v[0], v[1])
		}
	}
}
