// Package vlog is the versatile logistic distribution v-Log(β, γ, μ), the conjugate
// prior of a logistic likelihood: with slopes β, knots γ and multiplicities μ, K each,
//
//	p(z) ∝ f(z) = Π (1 + exp[βₖ(z−γₖ)])^−μₖ,   g(z) = −ln f(z)          (1)
//
// A label y = ±1 with P(y|z) = σ(yθ(z−φ)) multiplies f by a factor of slope −yθ, knot φ
// and multiplicity 1; algos/lab/viboost uses that. f can be normalised if and only if
// some slope is positive and some negative, each with a positive multiplicity. Then g
// is convex and p has one mode.
//
//	d := vlog.Density{Beta: []float64{1, -1, -1}, Gamma: []float64{0, 0, 2}, Mu: []float64{1, 1, 5}}
//	mode := d.Mode()
//	p, err := vlog.New(d)
//	if err != nil {
//		return err // a parameter out of range, or ErrImproper
//	}
//	mean, sd, tail := p.Mean(), math.Sqrt(p.Variance()), p.CDF(0)
//
// Source: A. Lorbert, D. Blei, R. Schapire, P. Ramadge, A Bayesian boosting model
// (2012), sections 3, S.1, S.4.1 and S.5.1.
//
// # Mode
//
// g′ = P − N, what pulls to the left and what pulls to the right. The mode is the
// root of
//
//	L(z) = ln P(z) − ln N(z)                                             (2)
//
// which is nearly a straight line where exponentials dominate. Newton's method on L,
// safeguarded by bisection, takes a handful of steps where g′ itself underflows or is
// flat. Nothing cancels in P and N (Density.balance). The paper's golden section on g
// (S.5.1) is not used. ApproxMode is (17): the exact mode of the density whose factors
// are replaced by their tails exp(τβ(z−γ)).
//
// # Normaliser and moments
//
// All are integrals of exp(−g̃), g̃(z) = g(z) − g(mode), a sum of positive terms in
// which nothing cancels (type anchor); the difference of g itself loses ten digits at a
// total multiplicity of 10⁶. The range ends where g̃ passes 45. It is split at the mode
// and into panels no longer than 4/max|β|, at most 400 on either side. Each is halved
// until the Gauss rule of 7 and Kronrod's of 15 points agree to 10⁻⁹ of the whole; the
// answer is then good to about 10⁻¹⁴. Normalising costs O(K) for each of a few hundred
// nodes. The length of the panels keeps the expectations of the sufficient statistics
// (34) as accurate as the density, also at a knot where the density is flat.
//
// # Sampling
//
// By rejection under a hat of three pieces: exp(−g̃) ≤ 1, and on either side the tangent
// of −g̃ at a point where g̃ = h is near 1, which makes the hat's area least. For h = 1
// the area of a side is the distance t of that point, and the mass under it is at least
// t(1−1/e), because g̃ is convex. A draw takes fewer than 1.9 trials in the mean,
// whatever the parameters. The paper's adaptive rejection sampling is not used.
//
// All results have the same bits on every CPU.
package vlog
