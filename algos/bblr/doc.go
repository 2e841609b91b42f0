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
// [Fit], [FitSparse] and [FitKernel] fit the paper's variants; only the laboratory uses
// them.
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
//	L(w) = −Σ ln p(y_i | x_i) + λ/2·|w|².
//
// Sources: M. K. Hasan and C. J. Pal, A new smooth approximation to the zero one
// loss with a probabilistic interpretation (2015), sections 3 to 5 and appendices A
// to C; for the algorithm SLA, T. Nguyen and S. Sanner, Algorithms for direct 0–1
// loss optimization in binary classification (2013).
//
// # The fit
//
// The loss is not convex. SLA raises γ in steps (2, 20, 200). At each it descends
// to a local minimum and then probes each coordinate at ±ε, ±2ε, … ±R. From a point
// that is better by ε_L it descends again (algorithms 1 and 2).
//
// FitKernel fits f(x) = Σ a_j·exp(−|x−x_j|²/2s²) instead of wᵀx. The penalty is
// λ/2·|a|² or, to keep few rows, the Gauss–Laplace prior of equation 41, fitted by
// hard EM (algorithm 3).
//
// The label is the sign of wᵀx; the paper does not define it. The rule μ > ½ fails:
// it is constant if a ≥ ½ or a+b ≤ ½, and unequal classes shift it.
//
// # Departures from the print
//
//   - Stage 1 is gradient descent with the paper's rates, preconditioned by L-BFGS.
//   - Algorithm 1 uses w* before it is set. Here w* starts at w₀, the logistic
//     regression. If the last level of γ ends above the loss of w₀, it is searched
//     again from w₀. Algorithm 2's "break" leaves both loops.
//   - r_γ is a growth factor. Appendix A gives no values for r_GMAX, r_GMIN, ε_L
//     and ε_G. Here they are 0.1, 10⁻⁵, 10⁻³ and 10⁻⁴ (of the mean gradient).
//   - Rows are standardised. The bias is the last weight, regularised like the
//     others. With λ = 10⁻³ this reproduces LR of table 3 exactly.
//   - Equations 29 and 30 are clipped where they are 0/0 or w > 1. BBLR4 does not
//     learn λ, which the rows cannot determine; SLAM chooses it.
//   - SLAM compares short descents without probes, not whole fits.
//   - Equation 41 prints σ_g² where (43) has σ_g; σ_g is used. Both widths of the
//     prior have floors: its likelihood has no maximum without them.
//
// # Invariants
//
// A fit is a function of its arguments, to the last bit and on every CPU: exp and
// log come from package logistic, products are rounded before they are summed, and
// sums run in one order. Every loop has a limit. MEASURED.md has errors and costs.
package bblr
