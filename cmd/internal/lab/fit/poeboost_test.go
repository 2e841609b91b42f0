package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The oracles of the poeboost rows: the paper's algorithms with the recursion (8)
// for the weights, every candidate tried in turn, plain sums and exponentials.

type poeExamples struct {
	x [][]float64
	y []float64
}

func drawPOE(seed uint64, n, d int) poeExamples {
	r := rand.New(rand.NewPCG(seed, 12))
	var e poeExamples
	for range n {
		row := make([]float64, d)
		for j := range row {
			row[j] = float64(r.IntN(400)-200) / 100
		}
		label := 1.0
		if row[0]-0.8*row[1%d]+r.NormFloat64() < 0 {
			label = -1
		}
		e.x, e.y = append(e.x, row), append(e.y, label)
	}
	return e
}

// closeTo wants got within 1e-9 of want, relative above 1.
func closeTo(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

// poeState joins an expert, which gives the true labels the probabilities p, to the
// product: (2), (6) and (8).
type poeState struct {
	d, prev []float64 // D and P(y | x, h₁…h_j)
}

func newPOEState(n int) *poeState {
	s := &poeState{}
	for range n {
		s.d, s.prev = append(s.d, 1/float64(n)), append(s.prev, 0.5)
	}
	return s
}

func (s *poeState) join(p []float64) (constraint, meanLog, trainError float64) {
	sum, n := 0.0, float64(len(p))
	for i := range p {
		constraint += s.d[i] / p[i]
		q := p[i]*s.prev[i] + (1-p[i])*(1-s.prev[i])
		s.d[i] *= (1 - p[i]) / q
		sum += s.d[i]
		s.prev[i] = p[i] * s.prev[i] / q
		meanLog += math.Log(s.prev[i]) / n
		if s.prev[i] < 0.5 {
			trainError += 1 / n
		}
	}
	for i := range s.d {
		s.d[i] /= sum
	}
	return constraint, meanLog, trainError
}

func TestPOEBoostDSByRecursion(t *testing.T) {
	for seed, half := range []bool{false, true, false, true} {
		e := drawPOE(uint64(seed), 40, 3)
		got := reply[poeBoostDSReply](t, requestLine(t, "poeboost.ds", "x", e.x, "y", e.y, "rounds", 8, "half_alpha", half))
		if len(got.Rounds) != 8 {
			t.Fatalf("%d rounds, want 8", len(got.Rounds))
		}
		s := newPOEState(len(e.x))
		for j, r := range got.Rounds {
			// The least ε by features, thresholds, +1 before −1.
			least := 1.0
			var feature, polarity int
			var threshold float64
			for f := range 3 {
				var values []float64
				for _, row := range e.x {
					values = append(values, row[f])
				}
				slices.Sort(values)
				values = slices.Compact(values)
				for k := 1; k < len(values); k++ {
					cut := (values[k-1] + values[k]) / 2
					for _, p := range []int{1, -1} {
						ε := 0.0
						for i, row := range e.x {
							if (row[f] > cut) != (e.y[i]*float64(p) > 0) {
								ε += s.d[i]
							}
						}
						if ε < least-1e-12 {
							least, feature, polarity, threshold = ε, f, p, cut
						}
					}
				}
			}
			what := fmt.Sprintf("seed %d, round %d: ", seed, j)
			if r.Feature != feature || r.Polarity != polarity || r.Threshold != threshold {
				t.Fatalf("%sstump %+v, want feature %d, threshold %v, polarity %d", what, r, feature, threshold, polarity)
			}
			pE := least
			if half {
				pE = math.Sqrt(least) / (math.Sqrt(least) + math.Sqrt(1-least))
			}
			p := make([]float64, len(e.x))
			for i, row := range e.x {
				p[i] = pE
				if (row[feature] > threshold) == (e.y[i]*float64(polarity) > 0) {
					p[i] = 1 - pE
				}
			}
			constraint, meanLog, trainError := s.join(p)
			closeTo(t, what+"ε", r.Epsilon, least)
			closeTo(t, what+"α", r.Alpha, 0.5*math.Log((1-pE)/pE))
			closeTo(t, what+"(6)", r.Constraint, constraint)
			closeTo(t, what+"mean log likelihood", r.MeanLogLikelihood, meanLog)
			closeTo(t, what+"train error", r.TrainError, trainError)
		}
		for i := range e.x {
			closeTo(t, "D", got.D[i], s.d[i])
			closeTo(t, "log-odds", got.LogOdds[i], e.y[i]*math.Log(s.prev[i]/(1-s.prev[i])))
		}
	}
}

// standardisedOf returns column f with mean 0 and population variance 1.
func (e *poeExamples) standardisedOf(f int) []float64 {
	var u []float64
	mean, variance, n := 0.0, 0.0, float64(len(e.x))
	for _, row := range e.x {
		mean += row[f] / n
	}
	for _, row := range e.x {
		variance += (row[f] - mean) * (row[f] - mean) / n
	}
	for _, row := range e.x {
		u = append(u, (row[f]-mean)/math.Sqrt(variance))
	}
	return u
}

// ascend maximises Σ D ln σ(y(wu+b)) − ½·1e-6·(w²+b²) by coordinates: each
// derivative falls, so its root is bisected for.
func ascend(u, y, d []float64) (w, b float64) {
	slope := func(w, b float64, byWeight bool) float64 {
		s := -1e-6 * b
		if byWeight {
			s = -1e-6 * w
		}
		for i, v := range u {
			g := d[i] * y[i] / (1 + math.Exp(y[i]*(w*v+b)))
			if byWeight {
				g *= v
			}
			s += g
		}
		return s
	}
	root := func(f func(float64) float64) float64 {
		lo, hi := -100.0, 100.0
		for range 60 {
			if mid := (lo + hi) / 2; f(mid) > 0 {
				lo = mid
			} else {
				hi = mid
			}
		}
		return lo
	}
	for range 60 {
		w = root(func(w float64) float64 { return slope(w, b, true) })
		b = root(func(b float64) float64 { return slope(w, b, false) })
	}
	return w, b
}

func TestPOEBoostCSByRecursion(t *testing.T) {
	for seed, c := range []struct {
		learner string
		rate    float64
	}{{"step", 1}, {"step", 6}, {"newton", 1}} {
		e := drawPOE(uint64(seed+10), 40, 3)
		got := reply[poeBoostCSReply](t, requestLine(t, "poeboost.cs", "x", e.x, "y", e.y, "rounds", 5, "learner", c.learner, "rate", c.rate))
		if len(got.Rounds) != 5 {
			t.Fatalf("%d rounds, want 5", len(got.Rounds))
		}
		s := newPOEState(len(e.x))
		for j, r := range got.Rounds {
			least, feature, weight, bias := 1.0, 0, 0.0, 0.0
			var correct []float64
			for f := range 3 {
				u := e.standardisedOf(f)
				w, b := 0.0, 0.0
				if c.learner == "newton" {
					w, b = ascend(u, e.y, s.d)
				} else {
					for i, v := range u {
						w += c.rate * s.d[i] * e.y[i] * v / 2
						b += c.rate * s.d[i] * e.y[i] / 2
					}
				}
				var p []float64
				wrong, all := 0.0, 0.0
				for i, v := range u {
					p = append(p, 1/(1+math.Exp(-e.y[i]*(w*v+b))))
					all += s.d[i] * math.Abs(1-2*p[i])
					if p[i] <= 0.5 {
						wrong += s.d[i] * (1 - 2*p[i])
					}
				}
				if wrong/all < least-1e-9 {
					least, feature, weight, bias, correct = wrong/all, f, w, b, p
				}
			}
			what := fmt.Sprintf("seed %d, %s, round %d: ", seed, c.learner, j)
			if r.Feature != feature {
				t.Fatalf("%sfeature %d, want %d", what, r.Feature, feature)
			}
			for i, p := range correct {
				correct[i] = (1-least)*p + least*(1-p)
			}
			constraint, meanLog, trainError := s.join(correct)
			closeTo(t, what+"weight", r.Weight, weight)
			closeTo(t, what+"bias", r.Bias, bias)
			closeTo(t, what+"ε_c", r.EpsilonC, least)
			closeTo(t, what+"P_e", r.PE, least)
			closeTo(t, what+"(6)", r.Constraint, constraint)
			closeTo(t, what+"mean log likelihood", r.MeanLogLikelihood, meanLog)
			closeTo(t, what+"train error", r.TrainError, trainError)
		}
		for i := range e.x {
			closeTo(t, "D", got.D[i], s.d[i])
			closeTo(t, "log-odds", got.LogOdds[i], e.y[i]*math.Log(s.prev[i]/(1-s.prev[i])))
		}
	}
}

// poe.algebra by the formulas as they are printed.
func TestPOEAlgebraAsPrinted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 12))
	for range 50 {
		n := 1 + r.IntN(6)
		d, p, prev := make([]float64, n), make([]float64, n), make([]float64, n)
		sum := 0.0
		for i := range d {
			d[i], p[i], prev[i] = 0.1+r.Float64(), r.Float64(), r.Float64()
			sum += d[i]
		}
		for i := range d {
			d[i] /= sum
		}
		pE := 0.05 + 0.4*r.Float64()
		got := reply[poeAlgebraReply](t, requestLine(t, "poe.algebra", "d", d, "p_correct", p, "p_e", pE, "p_prev", prev))
		constraint, bound, mistaken, next, top, bottom := 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
		expert, weights := make([]float64, n), make([]float64, n)
		for i := range d {
			expert[i] = (1-pE)*(1-(1-p[i])) + pE*(1-p[i])
			constraint += d[i] / expert[i]
			mistaken += 1 - prev[i]
			if p[i] <= 0.5 {
				bound += d[i] * (2*(2-1/pE)*p[i] + 1/pE)
				top += d[i] * (2*p[i] - 1)
				bottom += 2 * d[i] * (p[i] - 1)
			} else {
				bound += d[i] * (2*(1/(1-pE)-2)*p[i] + (4 - 1/(1-pE)))
				bottom -= 2 * d[i] * p[i]
			}
		}
		for i := range d {
			q := expert[i]*prev[i] + (1-expert[i])*(1-prev[i])
			weights[i] = (1 - expert[i]) * (1 - prev[i]) / mistaken / q
			next += weights[i]
		}
		closeTo(t, "(32)", got.EpsilonC, top/bottom)
		closeTo(t, "(6)", got.Constraint, constraint)
		closeTo(t, "(30)", got.Bound, bound)
		for i := range d {
			closeTo(t, "(13)", got.ExpertP[i], expert[i])
			closeTo(t, "(7)", got.DFromPrev[i], (1-prev[i])/mistaken)
			closeTo(t, "(8)", got.DNext[i], weights[i]/next)
		}
	}
}
