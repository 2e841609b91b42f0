// Package bblr is logistic regression on a smooth 0-1 loss: a generalised
// Beta–Bernoulli likelihood that saturates, so that an outlier or a forged label
// costs at most a constant. It fits linear and kernel classifiers.
//
// # The likelihood
//
// Logistic regression says θ = σ(wᵀx). Mix that with a Beta prior's mean by the
// weight that the prior has in the posterior mean of n draws, and sharpen it by γ:
//
//	p(y = +1 | x) = μ = w·θ + (1−w)·σ(γ·wᵀx) = a + b·σ(γ·wᵀx),
//	w = (α+β)/(α+β+n),   θ = α/(α+β).
//
// The mixture's weight is the scalar w, the coefficients the vector; the first is
// called Mix in the code. The loss −ln p has plateaus at −ln a and −ln c, c =
// 1−a−b; for large γ it is, shifted and scaled, the 0-1 loss, and with a = 0, b =
// 1, γ = 1 it is that of logistic regression. A fit minimises (equation 39)
//
//	L(w) = −Σ ln p(y_i | x_i) + λ/2·|w|².
//
// Source: M. K. Hasan and C. J. Pal, A new smooth approximation to the zero one
// loss with a probabilistic interpretation (2015), sections 3 to 5 and appendices
// A to C; T. Nguyen and S. Sanner, Algorithms for direct 0–1 loss optimization in
// binary classification (2013), whose algorithm SLA it is.
//
// # The fit
//
// The loss is not convex. SLA raises γ in steps (2, 20, 200) and at each descends
// to a local minimum, then probes each coordinate at ±ε, ±2ε, … ±R for a point
// that is better by ε_L, from which it descends anew (algorithms 1 and 2). [Fit]
// runs it from the logistic regression, in the paper's variants: a fixed prior
// (BBLR1), the counts of the labels (BBLR2), constants chosen on a held-out fifth by
// fits in the rough (BBLR3), mixture and γ learnt by their gradients as well, in one
// descent with w (BBLR4).
//
// [FitKernel] fits f(x) = Σ a_j·exp(−|x−x_j|²/2s²) in the place of wᵀx, with the
// penalty λ/2·|a|² or, to keep few rows, with the Gauss–Laplace prior of equation
// 41 by hard EM (algorithm 3).
//
// # Decisions and probabilities
//
// The label is the sign of wᵀx, on which the paper is silent. μ > ½ would not do:
// it is constant where a ≥ ½ or a+b ≤ ½, and with unequal classes BBLR2's mixture
// moves that boundary. μ, and the log-odds ln μ/(1−μ), are those of the model as
// fitted; at γ = 200 they are nearly two-valued. BBLR4 learns them.
//
// # Where we depart from the print
//
//   - Stage 1 is gradient descent with the paper's rates, preconditioned by
//     L-BFGS: lower losses with a tenth of the steps.
//   - w₀, the logistic regression, is ended by Newton steps up to 256 columns: on rows
//     as they are the descent alone left γ = 200 a loss off by a 270th.
//   - Algorithm 1 passes w* before setting it: it starts at w₀. Algorithm 2's
//     "break" leaves both loops: the first improving probe restarts the descent.
//     If the levels of γ end above the loss of w₀, the last is searched from w₀.
//   - r_γ is a growth factor. The constants without values in appendix A are 0.1,
//     10⁻⁵, 10⁻³ and 10⁻⁴, the last of the mean gradient.
//   - Rows are standardised and the bias is the last weight, regularised like the
//     others: with λ = 10⁻³ that reproduces LR of table 3 exactly.
//   - (29) and (30) are clipped where they are 0/0 or w > 1. λ in BBLR4 stays what
//     the held-out fifth chose, because the rows themselves cannot tell it.
//   - What SLAM chooses by is not whole fits but descents to some hundredths of a nat,
//     without probes; those of BBLR4 end at thousandths.
//   - Equation 41 prints σ_g² for (43)'s σ_g; both of the prior's widths have
//     floors, because its likelihood has no maximum without them.
//
// # Robust, and how much
//
// `go test -v -run 'Table|Noise|Kernels' ./algos/bblr` prints our errors beside the
// paper's. BBLR2 finds fewer training errors than the paper's on liver and pima.
// Where rows are replaced by noise it beats logistic regression on breast and
// liver; on clean data it does not, and pima is a set for LR either way.
//
// A fit of 500 rows and 60 columns costs 8 to 17 logistic regressions by gonum's
// L-BFGS, BBLR3's, which tries a dozen constants, 18 to 25, and BBLR4's 18 to 28
// (`go test -run - -bench Fit ./algos/bblr`, 2026-11-21).
//
// # In a stream
//
// A classifier that is fitted anew to a window every few hundred events takes
// [RebuildConfig]: 8 to 10 ms for 2,000 weighted rows of 60 columns, 2 to 2.5 of
// those regressions, where the zero value's three levels of γ, with improvements of
// 10⁻³ nats, take some 50.
//
// # Invariants
//
// A fit is a function of its arguments, to the last bit and on every CPU: exp and
// log are of package logistic, products that feed sums are rounded, sums run in
// one order, and the table that dismisses most probes is a bound that decides
// nothing. Every loop has an end of its own, whatever the numbers.
package bblr
