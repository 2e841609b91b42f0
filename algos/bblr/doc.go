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
// [Fit] and [FitKernel] fit the paper's variants and are the laboratory's.
//
// # The likelihood
//
// Logistic regression says θ = σ(wᵀx). Mix that with a Beta prior's mean by the
// weight that the prior has in the posterior mean of n draws, and sharpen it by γ:
//
//	p(y = +1 | x) = μ = w·θ + (1−w)·σ(γ·wᵀx) = a + b·σ(γ·wᵀx),
//	w = (α+β)/(α+β+n),   θ = α/(α+β).
//
// The mixture's weight is the scalar w, called Mix in the code; the coefficients are
// the vector. The loss −ln p has plateaus at −ln a and −ln c, c = 1−a−b. With a = 0,
// b = 1, γ = 1 it is that of logistic regression; for large γ it is, shifted and
// scaled, the 0-1 loss. A fit minimises (equation 39)
//
//	L(w) = −Σ ln p(y_i | x_i) + λ/2·|w|².
//
// Source: M. K. Hasan and C. J. Pal, A new smooth approximation to the zero one
// loss with a probabilistic interpretation (2015), sections 3 to 5 and appendices
// A to C. The algorithm SLA is of T. Nguyen and S. Sanner, Algorithms for direct 0–1
// loss optimization in binary classification (2013).
//
// # The fit
//
// The loss is not convex. SLA raises γ in steps (2, 20, 200) and at each descends
// to a local minimum. Then it probes each coordinate at ±ε, ±2ε, … ±R for a point
// that is better by ε_L, from which it descends again (algorithms 1 and 2).
//
// FitKernel fits f(x) = Σ a_j·exp(−|x−x_j|²/2s²) in the place of wᵀx, with the
// penalty λ/2·|a|² or, to keep few rows, with the Gauss–Laplace prior of equation
// 41 by hard EM (algorithm 3).
//
// The label is the sign of wᵀx; the paper does not say. μ > ½ does not serve: it is
// constant where a ≥ ½ or a+b ≤ ½, and unequal classes move it.
//
// # Departures from the print
//
//   - Stage 1 is gradient descent with the paper's rates, preconditioned by L-BFGS.
//   - Algorithm 1 passes w* before setting it: it starts at w₀, the logistic
//     regression. If the levels of γ end above the loss of w₀, the last is searched
//     from w₀. Algorithm 2's "break" leaves both loops.
//   - r_γ is a growth factor. The constants without values in appendix A are 0.1,
//     10⁻⁵, 10⁻³ and 10⁻⁴, the last of the mean gradient.
//   - Rows are standardised and the bias is the last weight, regularised like the
//     others: with λ = 10⁻³ that reproduces LR of table 3 exactly.
//   - (29) and (30) are clipped where they are 0/0 or w > 1. λ in BBLR4 stays what
//     the held-out fifth chose: the rows themselves cannot determine it.
//   - SLAM compares short descents without probes, not whole fits.
//   - Equation 41 prints σ_g² for (43)'s σ_g. Both widths of the prior have floors,
//     because its likelihood has no maximum without them.
//
// # Invariants
//
// A fit is a function of its arguments, to the last bit and on every CPU: exp and
// log are of package logistic, products that feed sums are rounded, sums run in
// one order, and the table that dismisses most probes is only a bound. Every loop
// has a limit of its own. MEASURED.md has errors and costs.
package bblr
