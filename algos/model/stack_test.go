package model

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
	"hamlet/algos/ensemble"
	"hamlet/algos/feature"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/text"
	"hamlet/algos/trust"
)

// circles returns n labelled vectors, the same for the same seed: spam lies around
// ham, in the plane of two dense names, and likes one of the hashed ones. Of ten
// labels one is false.
func circles(n int, seed uint64) []Example {
	r := rand.New(rand.NewPCG(seed, 3))
	all := make([]Example, n)
	for i := range all {
		a, b := r.NormFloat64(), r.NormFloat64()
		spam := a*a+b*b > 1.4
		word := "ham"
		if spam != (r.IntN(4) == 0) {
			word = "pill"
		}
		if r.IntN(10) == 0 {
			spam = !spam
		}
		all[i] = Example{
			ID: fmt.Sprint("c", i), Source: []string{"desk", "trap"}[i%2], Spam: spam,
			Body: Body{Tenant: "t", Vector: []feature.Number{{Name: "a", Value: a}, {Name: "b", Value: b}, {Name: word, Value: 1}}},
		}
	}
	return all
}

// besideCircles is the configuration of a model of circles whose vector half has a
// stack.
func besideCircles(second float64, kinds ...ensemble.Kind) Config {
	cfg := Config{TextExperts: []string{text.Lean},
		TableBits: 8, Dense: []string{"a", "b"}, SecondHead: second, Window: 150, Rebuild: 100,
		VectorEnsembles: []string{}, LabelTrust: TrustAll, Alarms: Alarms{Off: true},
	}
	for _, k := range kinds {
		cfg.VectorEnsembles = append(cfg.VectorEnsembles, string(k))
	}
	return cfg
}

func newOf(t *testing.T, cfg Config) *Model {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// dense is a posterior's belief written out.
type dense struct {
	w []float64
	v *mat.SymDense
}

func denseOf(p *blr.Posterior) dense {
	d := dense{w: make([]float64, p.Dim()), v: mat.NewSymDense(p.Dim(), nil)}
	p.MeanTo(d.w)
	p.CovarianceTo(d.v)
	return d
}

// moments returns wᵀx and xᵀVx, term by term.
func (d dense) moments(x []float64) (m, a float64) {
	for i := range x {
		m += d.w[i] * x[i]
		for j := range x {
			a += x[i] * d.v.At(i, j) * x[j]
		}
	}
	return m, a
}

// A served is what formula (1) of stack says of a body, the slow way, with the
// contributions in the order of the inputs.
type served struct {
	z              []float64
	mean, variance float64
	parts          []Contribution
	clipped        bool // an ensemble said more than it is believed
}

// serve works out what the stack of h answers to what p read as in.
func serve(h *submodel, names []string, in *features) (out served) {
	s := h.stack
	b, head := denseOf(s.Stacker()), denseOf(h.head)
	m1, a1 := head.moments(in.x)
	out.z = []float64{1, m1}
	beliefs, weights, variances := []dense{head}, []float64{b.w[1]}, []float64{a1}
	if s.Second() != nil {
		second := denseOf(s.Second())
		m2, a2 := second.moments(in.x)
		out.z = append(out.z, m2)
		beliefs, weights, variances = append(beliefs, second), append(weights, b.w[2]), append(variances, a2)
	}
	for i := range s.Kinds() {
		l := s.Ensemble(i).LogOdds(in.inputs)
		out.clipped = out.clipped || math.Abs(l) > 6
		out.z = append(out.z, math.Max(-6, math.Min(6, l)))
	}
	// joined is weightsᵀ·C·weights, where C has the variances on its diagonal and
	// the smaller of two as their covariance.
	joined := func(variances []float64) (sum float64) {
		for i := range weights {
			for j := range weights {
				sum += weights[i] * weights[j] * math.Min(variances[i], variances[j])
			}
		}
		return sum
	}
	out.mean, out.variance = b.moments(out.z)
	out.variance += joined(variances)
	for i, x := range in.x {
		c := Contribution{Name: names[i]}
		var own []float64
		for k, belief := range beliefs {
			c.Contribution += weights[k] * belief.w[i] * x
			own = append(own, belief.v.At(i, i)*x*x)
		}
		variance := joined(own)
		if i == 0 {
			c.Contribution += b.w[0]
			variance += b.v.At(0, 0)
		}
		c.SD = math.Sqrt(variance)
		out.parts = append(out.parts, c)
	}
	for k, kind := range s.Kinds() {
		j := len(out.z) - len(s.Kinds()) + k
		out.parts = append(out.parts, Contribution{
			Name: "ensemble: " + string(kind), Contribution: b.w[j] * out.z[j], SD: math.Abs(out.z[j]) * math.Sqrt(b.v.At(j, j)),
		})
	}
	return out
}

// Formula (1) of stack: what is served, and every contribution with its standard
// deviation, are what the parts make of it when each is written out, with the variances
// inflated by 1.5. The longest
// sums, of 13² terms, are off by some 170·2⁻⁵³ = 2e−14 of what their terms' sizes add
// up to, which is at most ten times one and the result, on both sides: under 1e−12.
func TestServedIsWhatThePartsSay(t *testing.T) {
	three := []ensemble.Kind{ensemble.LogitTrees, ensemble.RealAdaBoost, ensemble.AdaBoost}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*(1+math.Abs(want)) }
	for _, tt := range []struct {
		second float64
		kinds  []ensemble.Kind
	}{{0, three[:1]}, {0, three}, {0.98, nil}, {0.98, three[:1]}, {0.98, three}} {
		t.Run(fmt.Sprintf("second=%v/%v", tt.second, tt.kinds), func(t *testing.T) {
			cfg := besideCircles(tt.second, tt.kinds...)
			cfg.TextEnsembles = cfg.VectorEnsembles
			m := newOf(t, cfg)
			apply(t, m, circles(430, 1)...)
			apply(t, m, lengths(230, 1)...)
			p := m.NewPredictor()
			if gates := m.Gates(); len(gates) != 1 || gates[0].Open != (tt.kinds != nil) {
				t.Fatalf("gates %+v: open only with ensembles", gates)
			}
			events := circles(470, 2)[430:]
			if tt.kinds != nil { // else mail's stack does not serve
				events = slices.Concat(events, lengths(270, 2)[230:])
			}
			clipped := 0
			for _, ex := range events {
				got, parts, err := p.Explain(&ex.Body)
				if err != nil {
					t.Fatal(err)
				}
				s := m.submodel(&ex.Body)
				want := serve(s, s.layout.names, p.vectorizer.read(&ex.Body, s))
				if want.clipped {
					clipped++
				}
				if !near(got.Mean, want.mean) || !near(got.Variance, 1.5*want.variance) {
					t.Errorf("%s: mean %v, variance %v; want %v, %v", ex.ID, got.Mean, got.Variance, want.mean, 1.5*want.variance)
				}
				// Predictive's own error.
				if z := blr.Predictive(want.mean, 1.5*want.variance); math.Abs(got.LogOdds-z) > 1e-9 {
					t.Errorf("%s: log-odds %v, want %v", ex.ID, got.LogOdds, z)
				}
				if len(parts) != len(want.parts) {
					t.Fatalf("%s: %d contributions, want %d", ex.ID, len(parts), len(want.parts))
				}
				for _, c := range want.parts {
					i := slices.IndexFunc(parts, func(d Contribution) bool { return d.Name == c.Name })
					if i < 0 || !near(parts[i].Contribution, c.Contribution) || !near(parts[i].SD, math.Sqrt(1.5)*c.SD) {
						t.Errorf("%s: want %+v among %+v", ex.ID, c, parts)
					}
				}
			}
			if len(tt.kinds) == len(three) && clipped == 0 { // AdaBoost's scale is the widest
				t.Error("no ensemble said more than ±6: nothing shows that it is clipped")
			}
		})
	}
}

// A taught is a row of the window as it should be, and what became of it.
type taught struct {
	inputs     []float64
	label, phi float64
	gone       int // events that the half had learnt when it was withdrawn; −1: it stands
}

// windowOf returns the last 150 of the first n rows without those that are out, by
// when they were withdrawn.
func windowOf(rows []taught, n int, out func(gone int) bool) *ensemble.Window {
	w := &ensemble.Window{Dim: len(rows[0].inputs)}
	for _, r := range rows[max(0, n-150):n] {
		if r.gone >= 0 && out(r.gone) {
			continue
		}
		for _, v := range r.inputs {
			w.Inputs = append(w.Inputs, float32(v))
		}
		w.Labels, w.Weights = append(w.Labels, r.label), append(w.Weights, r.phi)
	}
	return w
}

// builtFrom returns the bytes of the ensemble that a window makes.
func builtFrom(t *testing.T, kind ensemble.Kind, w *ensemble.Window) []byte {
	t.Helper()
	r := ensemble.Build(context.Background(), []ensemble.Kind{kind}, w)[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	b, err := r.Ensemble.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Rows withdrawn before a rebuild starts are not in it: the ensemble is, byte for
// byte, that of the window without them. One that is under way keeps them, also
// where it is started again from a checkpoint.
func TestWithdrawnRowsTakeNoPartInLaterRebuilds(t *testing.T) {
	kinds := []ensemble.Kind{ensemble.LogitTrees, ensemble.AdaBoost}
	for _, stop := range []int{0, 49, 100, 131, 300, 331, 399} {
		t.Run(fmt.Sprintf("stop=%d", stop), func(t *testing.T) {
			m, events := newOf(t, besideCircles(0, kinds...)), circles(500, 4)
			var rows []taught
			var learnt []Example
			rebuilds := 0
			// check compares the ensembles that an event brought with those that
			// its window makes, and makes sure that other windows make others.
			check := func(effect Effect) {
				for i, r := range effect.Rebuilds {
					rebuilds++
					n := int(r.Started)
					got, err := m.submodels[ofVector].stack.Ensemble(i).AppendBinary(nil)
					if r.Err != nil || err != nil {
						t.Fatal(r.Err, err)
					}
					if want := builtFrom(t, kinds[i], windowOf(rows, n, func(gone int) bool { return gone < n })); !bytes.Equal(got, want) {
						t.Errorf("%s started after %d events, in effect after %d: not that of its window", kinds[i], n, len(rows))
					}
					if n < 100 {
						continue // too few rows to be told apart
					}
					for name, out := range map[string]func(gone int) bool{
						"all rows":                   func(int) bool { return false },
						"what stands when it serves": func(int) bool { return true },
						"a withdrawal too few":       func(gone int) bool { return gone < n-1 },
						"a withdrawal too many":      func(gone int) bool { return gone <= n },
					} {
						if bytes.Equal(got, builtFrom(t, kinds[i], windowOf(rows, n, out))) {
							t.Errorf("%s started after %d events: %s would make the same", kinds[i], n, name)
						}
					}
				}
			}
			teach := func(ex Example) {
				effect := apply(t, m, ex)
				r := taught{inputs: slices.Clone(m.own.vectorizer.byKind[ofVector].inputs), label: -1, phi: effect.Phi, gone: -1}
				if ex.Spam {
					r.label = 1
				}
				rows, learnt = append(rows, r), append(learnt, ex)
				check(effect)
			}
			r := rand.New(rand.NewPCG(7, 4))
			for last := 20; len(rows) < 500; {
				n := len(rows)
				// Just before a rebuild starts, and as soon as it has, something is withdrawn.
				if n > last && (n%50 == 49 || n%50 == 0 || r.IntN(6) == 0) {
					last = n
					k := n - 1 - r.IntN(min(n, 60))
					for rows[k].gone >= 0 {
						k--
					}
					rows[k].gone = n
					of := learnt[k]
					if again := of; r.IntN(3) == 0 {
						again.ID, again.Action, again.Of, again.Spam = of.ID+"'", Relearn, of.ID, !of.Spam
						teach(again)
					} else {
						apply(t, m, unlearn("u"+of.ID, of))
					}
				} else {
					teach(events[n])
				}
				if stop > 0 && len(rows) == stop {
					var err error
					if m, err = Restore(image(t, m)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if want := 2 * 9; rebuilds != want {
				t.Errorf("%d ensembles came into effect, want %d", rebuilds, want)
			}
		})
	}
}

// A sited is an event as the stacker or the second head should have absorbed it.
type sited struct {
	x    []float64
	step blr.Step
	gone bool
}

// recomputed is the belief that is left of the events when those that are gone are
// left out, with the prior before and ρ an event forgotten at every fiftieth of
// them, the first of which is counted as 1.
func recomputed(t *testing.T, before prior, ρ float64, events []sited) dense {
	t.Helper()
	d := len(before.mean)
	lambda, eta := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	for j, τ := range before.precision {
		lambda.SetSym(j, j, τ)
		eta.SetVec(j, τ*before.mean[j])
	}
	for i, e := range events {
		if e.gone {
			continue
		}
		left := math.Pow(ρ, float64(50*(len(events)/50-i/50))) // a fiftieth event fades with those before it
		x := mat.NewVecDense(d, e.x)
		lambda.SymRankOne(lambda, left*e.step.H, x)
		eta.AddScaledVec(eta, left*e.step.Eta, x)
	}
	var chol mat.Cholesky
	if !chol.Factorize(lambda) {
		t.Fatal("the summed precision is not positive definite")
	}
	v, w := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	if err := chol.InverseTo(v); err != nil {
		t.Fatal(err)
	}
	if err := chol.SolveVecTo(w, eta); err != nil {
		t.Fatal(err)
	}
	return dense{w: w.RawVector().Data, v: v}
}

// Stacker and second head after withdrawals are what their other sites make when
// they are summed densely, each faded by the forgetting since, to 1e−9. The sites
// are solved here, from the belief before the event.
func TestWithdrawalsLeaveTheOtherSitesOfTheStack(t *testing.T) {
	for _, tt := range []struct {
		second float64
		kinds  []ensemble.Kind
	}{{0, []ensemble.Kind{ensemble.LogitTrees}}, {0.97, nil}, {0.97, []ensemble.Kind{ensemble.LogitTrees, ensemble.AdaBoost}}} {
		t.Run(fmt.Sprintf("second=%v/%v", tt.second, tt.kinds), func(t *testing.T) {
			m, events := newOf(t, besideCircles(tt.second, tt.kinds...)), circles(620, 5)
			var joint, second []sited
			jointOf, secondOf := map[string]int{}, map[string]int{}
			doubtful, withdrawn := 0, map[string]bool{}
			learn := func(ex Example) {
				in := m.own.vectorizer.read(&ex.Body, m.submodel(&ex.Body))
				h, x := m.submodels[ofVector], slices.Clone(in.x)
				y, ε := -1.0, trust.FirstFlipRate
				if ex.Spam {
					y = 1
				}
				if h == nil {
					h = newSubmodel(m.specs[ofVector], m.cfg.Alarms) // the prior, before the first event
				} else {
					ε = h.labels.FlipRate()
				}
				predict(h, in)
				weight := trust.Phi(logistic.Sigmoid(y*in.head.LogOdds), ε, ε)
				if weight < 0.9 {
					doubtful++
				}
				if h.stack.Serves() {
					z := serve(h, m.specs[ofVector].layout.names, in).z
					mean, variance := denseOf(h.stack.Stacker()).moments(z)
					jointOf[ex.ID] = len(joint)
					joint = append(joint, sited{x: z, step: blr.RVGA.Solve(mean, variance, y, weight)})
				}
				if h.stack.Second() != nil {
					mean, variance := denseOf(h.stack.Second()).moments(x)
					secondOf[ex.ID] = len(second)
					second = append(second, sited{x: x, step: blr.RVGA.Solve(mean, variance, y, weight)})
				}
				apply(t, m, ex)
			}
			compare := func(part string, p *blr.Posterior, want dense) {
				t.Helper()
				got, worst := denseOf(p), 0.0
				for i, w := range want.w {
					worst = max(worst, math.Abs(got.w[i]-w)/(1+math.Abs(w)))
					for j := range want.w {
						worst = max(worst, math.Abs(got.v.At(i, j)-want.v.At(i, j))/(1+math.Abs(want.v.At(i, j))))
					}
				}
				if !(worst <= 1e-9) {
					t.Errorf("%s: w and V are off by %.2g, want at most 1e-9", part, worst)
				}
			}
			r := rand.New(rand.NewPCG(8, 5))
			for i, ex := range events {
				learn(ex)
				if i%20 == 7 && i < 600 {
					of := events[i-r.IntN(min(i, 130))]
					for k := i; withdrawn[of.ID]; k-- {
						of = events[k]
					}
					withdrawn[of.ID] = true
					apply(t, m, unlearn("u"+of.ID, of))
					if j, ok := jointOf[of.ID]; ok {
						joint[j].gone = true
					}
					if j, ok := secondOf[of.ID]; ok {
						second[j].gone = true
					}
				}
				if i%103 != 102 && i != len(events)-1 {
					continue
				}
				s := m.submodels[ofVector].stack
				compare("stacker", s.Stacker(), recomputed(t, stackerPrior(tt.second, len(tt.kinds)), 0.995, joint))
				if tt.second > 0 {
					compare("second head", s.Second(), recomputed(t, m.specs[ofVector].layout.prior, tt.second, second))
				}
			}
			if doubtful < 20 {
				t.Errorf("%d labels in doubt: nothing shows what a weight does", doubtful)
			}
		})
	}
}

// stackerPrior is written out: half of the weight for the head, the other half
// shared by what stands beside it.
func stackerPrior(second float64, ensembles int) (p prior) {
	others := ensembles
	if second > 0 {
		others++
	}
	p.mean, p.precision = []float64{0, 0.5}, []float64{10, 4}
	for range others {
		p.mean, p.precision = append(p.mean, 0.5/float64(others)), append(p.precision, 4)
	}
	return p
}
