package bblr

import (
	"cmp"
	"context"
	"math"
	"slices"

	"hamlet/algos/internal/sla"
)

// A sparsifier minimises the negative of equation 41 by algorithm 3, hard EM. Each
// coefficient belongs to the Gaussian, which shrinks it little, or to the Laplace
// distribution, which pulls it to 0.
type sparsifier struct {
	*sla.Objective
	prior    *GaussLaplace // the objective's
	prober   *sla.Prober
	schedule Schedule
	gauss    []bool    // by coefficient: it belongs to the Gaussian
	ridge    []float64 // 1/σ_g² for a coefficient of the Gaussian, else 0
	l1       []float64 // 1/b_l for one of the Laplace distribution, else 0
	grad     []float64
}

// The paper gives no values for these (MEASURED.md). The likelihood of equation 41
// has no maximum: it may grow without bound as b_l → 0 if all Laplace coefficients
// are 0, and as σ_g → 0 with one Gaussian coefficient. The floors prevent both.
const (
	firstScale = 2    // b_l before there are clusters, when all coefficients are near 0
	leastScale = 0.2  // the floor of b_l
	leastSD    = 0.1  // the floor of σ_g
	threshold  = 1e-3 // a coefficient below this fraction of the largest becomes 0
	mostRounds = 20   // of hard EM, and of all three stages

	mostSelections = 50 // of coefficients within one descent; 2 to 10 are usual
)

func newSparsifier(p *sla.Problem, c sla.Curve, s Schedule) *sparsifier {
	o := sla.NewObjective(p, c, 0)
	prior := &GaussLaplace{GaussShare: 0.5, GaussSD: 1, LaplaceShare: 0.5, LaplaceScale: firstScale}
	o.Prior = prior
	return &sparsifier{
		Objective: o, prior: prior, prober: sla.NewProber(o, s.LossTolerance), schedule: s, gauss: make([]bool, p.D),
		ridge: make([]float64, p.D), l1: make([]float64, p.D), grad: make([]float64, p.D),
	}
}

// fit moves a to a minimum in rounds of three stages, until a round gains less than
// ε_L. Stage 1 descends with fixed clusters; at first the coefficients that are 0
// are Laplace, the others Gaussian. Stage 2 is hard EM. Stage 3 probes under the
// mixture; a probe that improves starts the next round.
//
// For few rows or a narrow kernel, EM can set all coefficients to 0. If less than
// three quarters of the first descent's gain in loss is left, its coefficients are
// used. At the end, coefficients below a thousandth of the largest become 0.
func (s *sparsifier) fit(ctx context.Context, a []float64) error {
	s.assign(a, func(v float64) bool { return v != 0 })
	nothing := s.losses(make([]float64, len(a)))
	var first []float64
	last := math.Inf(1)
	for range mostRounds {
		if err := s.descend(ctx, a); err != nil {
			return err
		}
		if first == nil {
			first = slices.Clone(a)
		}
		if err := s.cluster(ctx, a); err != nil {
			return err
		}
		value, εL := s.Value(a), s.schedule.LossTolerance
		if !(last-value >= εL) {
			break
		}
		last = value
		better, err := s.prober.Improve(ctx, a, value, s.schedule.Radius, s.schedule.Spacing, εL)
		if err != nil {
			return err
		}
		if !better {
			break
		}
		s.assign(a, s.isGauss)
	}
	if nothing-s.losses(a) < 0.75*(nothing-s.losses(first)) {
		copy(a, first)
	}
	largest := 0.0
	for _, v := range a {
		largest = max(largest, math.Abs(v))
	}
	for j, v := range a {
		if math.Abs(v) < float64(threshold*largest) {
			a[j] = 0
		}
	}
	return nil
}

// losses returns the objective without the prior.
func (s *sparsifier) losses(a []float64) float64 {
	s.Margins(s.M, a)
	return s.Sum()
}

// descend is the model's update. It minimises the losses plus, by cluster, a²/2σ_g²
// or |a|/b_l, the negative log density of the coefficient's part of the mixture.
// Steps in few columns are cheap: it descends in the k coefficients that are not 0
// and the k+10 others of largest pseudo-gradient, then selects again.
func (s *sparsifier) descend(ctx context.Context, a []float64) error {
	for j, g := range s.gauss {
		s.l1[j], s.ridge[j] = 1/s.prior.LaplaceScale, 0
		if g {
			s.l1[j], s.ridge[j] = 0, 1/float64(s.prior.GaussSD*s.prior.GaussSD)
		}
	}
	r := s.schedule.rates(s.Total)
	last := math.Inf(1)
	for range mostSelections {
		value := s.Objective.Gradient(s.grad, a)
		for j, v := range a {
			value += float64(s.l1[j]*math.Abs(v)) + float64(0.5*float64(s.ridge[j]*float64(v*v)))
			s.grad[j] += float64(s.ridge[j] * v)
			s.grad[j] = pseudoGradient(s.grad[j], v, s.l1[j])
		}
		if !(value < last) || !(sla.Norm(s.grad) > r.Tolerance) {
			return nil
		}
		last = value
		if err := s.descendIn(ctx, a, s.selection(a), r); err != nil {
			return err
		}
	}
	return nil
}

// selection returns the coefficients to descend in, in order.
func (s *sparsifier) selection(a []float64) []int {
	var chosen, others []int
	for j, v := range a {
		if v != 0 {
			chosen = append(chosen, j)
		} else if s.grad[j] != 0 {
			others = append(others, j)
		}
	}
	slices.SortFunc(others, func(i, j int) int {
		return cmp.Or(cmp.Compare(math.Abs(s.grad[j]), math.Abs(s.grad[i])), cmp.Compare(i, j))
	})
	chosen = append(chosen, others[:min(len(others), len(chosen)+10)]...)
	slices.Sort(chosen)
	return chosen
}

// descendIn descends in the chosen coefficients; all others are 0.
func (s *sparsifier) descendIn(ctx context.Context, a []float64, chosen []int, r sla.Rates) error {
	p := &sla.Problem{N: s.N, D: len(chosen), Y: s.Y, Weight: s.Weight, Total: s.Total}
	m := &sla.Dense{N: p.N, D: p.D, Rows: make([]float64, p.N*p.D), Cols: make([]float64, p.N*p.D)}
	p.Design = m
	f := ridged{Objective: sla.NewObjective(p, s.Curve, 0), ridge: make([]float64, p.D)}
	l := newLasso(p.D)
	part := make([]float64, p.D)
	for k, j := range chosen {
		part[k], f.ridge[k], l.l1[k] = a[j], s.ridge[j], s.l1[j]
		col := m.Column(nil, k)
		copy(col, s.Column(col, j))
		for i, v := range col {
			m.Rows[i*p.D+k] = v
		}
	}
	_, err := l.minimise(ctx, f, part, r)
	for k, j := range chosen {
		a[j] = part[k]
	}
	return err
}

// A ridged adds the penalty ridge_j·a_j²/2 for each coefficient to an objective.
type ridged struct {
	*sla.Objective
	ridge []float64
}

func (o ridged) Gradient(grad, a []float64) float64 {
	value := o.Objective.Gradient(grad, a)
	for j, c := range o.ridge {
		g := float64(c * a[j])
		grad[j] += g
		value += float64(0.5 * float64(g*a[j]))
	}
	return value
}

// cluster is hard EM. It updates the prior, the coefficients and the clusters in
// turn until no cluster changes.
func (s *sparsifier) cluster(ctx context.Context, a []float64) error {
	s.assign(a, func(v float64) bool { return v != 0 })
	for range mostRounds {
		s.learnPrior(a)
		if err := s.descend(ctx, a); err != nil {
			return err
		}
		if !s.assign(a, s.isGauss) {
			break
		}
	}
	return nil
}

// isGauss reports whether a belongs to the Gaussian by its posterior. 0 never does.
func (s *sparsifier) isGauss(a float64) bool { return a != 0 && s.prior.Responsibility(a) > 0.5 }

// assign sets the clusters and reports whether one has changed.
func (s *sparsifier) assign(a []float64, gauss func(float64) bool) (changed bool) {
	for j, v := range a {
		g := gauss(v)
		changed = changed || g != s.gauss[j]
		s.gauss[j] = g
	}
	return changed
}

// learnPrior fits the prior to the clusters by maximum likelihood, above the
// floors. The shares count one more of each. A distribution without coefficients
// keeps its width; otherwise it could never regain one.
func (s *sparsifier) learnPrior(a []float64) {
	var gauss, laplace int
	squares, lengths := 0.0, 0.0
	for j, v := range a {
		if s.gauss[j] {
			gauss++
			squares += float64(v * v)
		} else {
			laplace++
			lengths += math.Abs(v)
		}
	}
	n := float64(gauss + laplace + 2)
	s.prior.GaussShare, s.prior.LaplaceShare = float64(gauss+1)/n, float64(laplace+1)/n
	if gauss > 0 {
		s.prior.GaussSD = max(math.Sqrt(squares/float64(gauss)), leastSD)
	}
	if laplace > 0 {
		s.prior.LaplaceScale = max(lengths/float64(laplace), leastScale)
	}
}
