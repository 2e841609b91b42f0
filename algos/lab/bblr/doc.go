// Package bblr fits the paper's variants of the classifier of algos/bblr:
//
//	m, report, err := bblr.Fit(ctx, bblr.Config{Variant: bblr.BBLR3}, x, y, nil)
//
// [Fit] raises γ in steps (2, 20, 200) and searches at each (algorithm 1; package sla).
// [FitSparse] does it for rows that are mostly 0. [FitKernel] fits
// f(x) = Σ a_j·exp(−|x−x_j|²/2s²) instead of wᵀx. The penalty is λ/2·|a|² or, to keep
// few rows, the Gauss–Laplace prior of equation 41, fitted by hard EM (algorithm 3).
//
// Source: M. K. Hasan and C. J. Pal, A new smooth approximation to the zero one loss
// with a probabilistic interpretation (2015). MEASURED.md has errors and costs.
//
// # Departures from the print
//
//   - Algorithm 1 uses w* before it is set. Here w* starts at w₀, the logistic
//     regression. If the last level of γ ends above the loss of w₀, it is searched
//     again from w₀.
//   - r_γ is a growth factor. Appendix A gives no values for r_GMAX, r_GMIN, ε_L
//     and ε_G. Here they are 0.1, 10⁻⁵, 10⁻³ and 10⁻⁴ (of the mean gradient).
//   - Rows are standardised. The bias is the last weight, regularised like the
//     others. With λ = 10⁻³ this reproduces LR of table 3 exactly.
//   - Equations 29 and 30 are clipped where they are 0/0 or w > 1. BBLR4 does not
//     learn λ, which the rows cannot determine; SLAM chooses it.
//   - SLAM compares short descents without probes, not whole fits.
//   - Equation 41 prints σ_g² where (43) has σ_g; σ_g is used. Both widths of the
//     prior have floors: its likelihood has no maximum without them.
package bblr
