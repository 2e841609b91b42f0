// Package vlog is the versatile logistic distribution v-Log(β, γ, μ), which is
// to a logistic likelihood what the Beta is to a coin: with slopes β, knots γ and
// multiplicities μ, K each,
//
//	p(z) ∝ f(z) = Π (1 + exp[βₖ(z−γₖ)])^−μₖ,   g(z) = −ln f(z)          (1)
//
// A label y = ±1 with P(y|z) = σ(yθ(z−φ)) multiplies f by a factor of the same
// form, slope −yθ, knot φ, multiplicity 1: the conjugacy that boosting as
// inference (package viboost) stands on. f can be normalised if and only if some
// slope is positive and some negative, each with a positive multiplicity; then
// g is convex and p has one mode.
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
// which is nearly a straight line wherever exponentials rule, so that Newton's
// method on L, safeguarded by bisection in a bracket that always holds the root,
// takes a handful of steps where g′ itself underflows or is flat. P and N are taken
// so that nothing cancels in them (Density.balance). The paper's golden section on
// g (S.5.1) is not used. ApproxMode is (17): the exact mode of the density whose
// factors are replaced by their tails exp(τβ(z−γ)).
//
// # Normaliser and moments
//
// All of them are integrals of exp(−g̃), g̃(z) = g(z) − g(mode), a sum of positive
// terms in which nothing cancels (type anchor): at a total multiplicity of 10⁶ the
// difference of g itself has lost ten digits. The range ends where g̃ passes 45,
// which is the scale that the tangent substitution (97) lacks. It is split at the
// mode and into panels no longer than 4/max|β|, 400 on either side at most; each
// is halved until the Gauss rule of 7 and Kronrod's of 15 points agree to 10⁻⁹ of
// the whole, and the answer, by the 15, is then good to about 10⁻¹⁴. Normalising
// costs O(K) for each of a few hundred nodes. Panels no longer than 4/max|β| keep
// the expectations of the sufficient statistics (34) as accurate as the density,
// also where it does not see a knot.
//
// # Sampling
//
// By rejection under a hat of three pieces: exp(−g̃) ≤ 1, and on either side the
// tangent of −g̃ at a point where g̃ = h is near 1, which makes the hat's area
// least. For h = 1 the area of a side is the distance t of that point and the mass
// under it at least t(1−1/e), because g̃ is convex; for the h allowed here a draw
// takes fewer than 1.9 trials in the mean, whatever the parameters. The paper's
// adaptive rejection sampling would refine such a hat with every rejection.
//
// Everything here is computed with the same bits on every CPU (package logistic,
// sums in the order given).
package vlog
