// Package crf labels many sites together: the pixels of an image, the faces of a page.
// The probability of labels y = ±1 joins a classifier of each site with a measurement of
// each pair,
//
//	p(y | x, D) ∝ Πᵢ p(yᵢ | xᵢ) · Πₗ p(Dₗ | yᵢ, yⱼ) · Πₘ p(Sₘ | y),
//
// which is equation 40 of M. K. Hasan and C. J. Pal, A new smooth approximation to the
// zero one loss with a probabilistic interpretation (2015), given D and S. Its negative
// logarithm is an energy, a sum over sites and pairs (a conditional random field):
//
//	E(y) = Σᵢ −ln p(yᵢ | xᵢ) − Σₗ Jₗ·matchₗ(y),   Jₗ = v₀ + v₁Dₗ.
//
// The parts are these.
//
//   - p(yᵢ | xᵢ) is the likelihood of package bblr, a + b·σ(γwᵀxᵢ): the smooth 0-1 loss.
//     A site costs at most −ln a or −ln c, so that neighbours can outvote an outlier. With
//     Mix = 0 it is logistic regression, the paper's maximum entropy model.
//   - matchₗ is 0 or 1. Two pixels match if their labels are equal, two faces if both are
//     of the person sought.
//   - Dₗ measures how alike two sites look. It is normal with one variance s², and mean m₁
//     if they match, m₀ if not. So v₁ = (m₁−m₀)/s² and v₀ = (m₀²−m₁²)/2s². The paper does
//     not give this density.
//   - Sₘ says that at most one face of a picture is of that person. It is a pair that
//     forbids (+1, +1).
//
// A model is fitted in one of two ways. In the paper's, each part is learnt apart:
// package bblr fits w, [FitMatch] v. [Fit] learns (w, v) together; it minimises −ln
// p(y | x, D) of whole images, plus a penalty.
//
//	m, _, err := crf.Fit(ctx, samples, crf.Model{W: make([]float64, 4)}, 1e-3)
//	if err != nil {
//		return err
//	}
//	y, p := m.Predict(sample) // the labels of least energy; the marginals
//
// # Exact inference
//
// The paper enumerates the labels of 2 to 7 faces. Here sites are eliminated in their
// order: a table holds a number for each labelling of the open sites, which still have
// pairs to later sites. On a grid the open sites are a column. So the cost is 2 to the
// number of rows for each site, and any pair of costs will do; a minimum cut would need
// Jₗ ≥ 0 everywhere. Tests compare it with enumeration. [Graph.ICM] is the usual
// approximation, for comparison.
//
// # The gradient
//
// With fᵢ = ln p(+1 | xᵢ)/p(−1 | xᵢ),
//
//	∂/∂fᵢ −ln p(y | x, D) = −½(yᵢ − E yᵢ),   ∂/∂Jₗ −ln p(y | x, D) = −(matchₗ(y) − E matchₗ).
//
// It is convex if Mix = 0. [Scene] and [Page] draw the synthetic data of the experiments.
package crf
