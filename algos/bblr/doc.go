// Package bblr is logistic regression on a smooth 0-1 loss: a generalised
// Beta–Bernoulli likelihood that saturates, so that an outlier or a forged label
// costs at most a constant. [Rebuild] fits a linear classifier to a window of a
// stream:
//
//	m, err := bblr.Rebuild(ctx, x, y, nil) // rows, labels ±1, weights of 1
//	if errors.Is(err, bblr.ErrOneClass) {
//		return // wait for the other label
//	}
//	if err != nil {
//		return err
//	}
//	z := m.LogOdds(x[0])   // nats
//	p := m.Prob(x[0])      // in [a, a+b]
//	y := m.Label(x[0])     // ±1
//
// # The likelihood
//
// Logistic regression has p = σ(wᵀx). The paper mixes this with θ, the mean of a
// Beta prior. w is the prior's weight in the posterior mean of n draws, and γ makes
// the curve steeper:
//
//	p(y = +1 | x) = μ = w·θ + (1−w)·σ(γ·wᵀx) = a + b·σ(γ·wᵀx),
//	w = (α+β)/(α+β+n),   θ = α/(α+β).
//
// The scalar w is the weight of the mixture, called Mix in the code. The vector w
// holds the coefficients. The loss −ln p has plateaus at −ln a and −ln c, c =
// 1−a−b. At a = 0, b = 1, γ = 1 it is the loss of logistic regression. For large γ
// it is the 0-1 loss, shifted and scaled. A fit minimises (equation 39)
//
//	L(w) = −Σ ln p(y_i | x_i) + λ/2·|w|²
//
// by the algorithm of package sla, at one γ. Rows are standardised. The bias is the
// last weight, regularised like the others.
//
// The label is the sign of wᵀx; the paper does not define it. The rule μ > ½ fails:
// it is constant if a ≥ ½ or a+b ≤ ½, and unequal classes shift it.
//
// Source: M. K. Hasan and C. J. Pal, A new smooth approximation to the zero one loss
// with a probabilistic interpretation (2015), sections 3 to 5 and appendices A to C.
// The paper's variants are in algos/lab/bblr.
package bblr
