// Package blr implements online Bayesian logistic regression with a full
// Gaussian belief about the weights,
//
//	p(y | x, β) = σ(y·βᵀx),  y = ±1,   β ~ N(w, V).
//
// # One event
//
// The likelihood of one event depends on β only through z = βᵀx. It is replaced
// by a Gaussian in z, so that the belief stays Gaussian. In the natural
// parameters Λ = V⁻¹, η = Λw, which are the truth here, that is a sum,
//
//	Λ ← Λ + h·xxᵀ,   η ← η + (r + h·m′)·x,   m′ = m + r·a,
//
// with m = wᵀx and a = xᵀVx. V, w and ln|V| are kept beside it: with u = Vx,
//
//	w ← w + r·u                  (1)
//	V ← V − h/(1+ha)·uuᵀ         (2)
//	ln|V| ← ln|V| − ln(1+ha)     (3)
//
// (2) is the Sherman–Morrison inverse of Λ + h·xxᵀ and (3) the determinant
// lemma. To see (1), multiply Λ′w′ = η + (r+hm′)x by V′ = V − h/(1+ha)·uuᵀ:
// w′ = w + [(r + h(m+ra)) − hm]/(1+ha)·u = w + r·u. An event costs O(D²): one
// product of a symmetric matrix and a vector and two updates of a triangle; it
// factorises nothing and allocates nothing. That is 0.3 µs for 13 inputs, 2.3 for
// 58 and 34 for 256, the scheduled factorings included (Xeon, 2026-11-21,
// `go test -run - -bench Update ./algos/blr`).
//
// # Two sites
//
// Only the scalars h and r depend on how the likelihood is approximated; both
// sites take it to a power φ in (0, 1], the trust in the label, and solve their
// fixed point in scalars.
//
// JaakkolaJordan bounds it from below, touching it at z = ±ξ, with
// λ(ξ) = tanh(ξ/2)/4ξ and q = 1 + 2φλa:
//
//	h = 2φλ,   r + h·m′ = φy/2,   r = (φy/2 − 2φλm)/q,
//	ξ² = a/q + ((m + φya/2)/q)²
//
// η is therefore the prior's plus Σ φyx/2 exactly, whatever the ξ are. Source:
// J. Drugowitsch, Bayesian logistic regression (2010), eqs. 51–56, multiplied
// out; the printed iteration of matrices and its stopping rule on the bound are
// not used. Each ξ is solved once, early, and stays too small, so V is somewhat
// too narrow and w shrunk.
//
// RVGA, the default, is the Gaussian nearest in KL(q‖·) to belief times
// likelihood. Its stationary point (M. Lambert, S. Bonnabel, F. Bach, The
// recursive variational Gaussian approximation, Statistics and Computing 2022)
// is, under z ~ N(m′, s′) after the event,
//
//	r = φy·E[σ(−yz)],   h = φ·E[σ(z)σ(−z)],   s′ = a/(1+ha),
//
// and both expectations are taken by the probit approximation
// E[σ(z)] ≈ σ(m′/√(1+πs′/8)). The site is implicit: it looks at the belief after
// the event. The explicit step (extended Kalman, Newton) is chaotic where p
// saturates.
//
// # Forgetting
//
// With a half-life of H events, ρ = 2^(−1/H), every 50th update is followed by
// Λ ← ρ⁵⁰Λ + (1−ρ⁵⁰)Λ₀ and the same for η: a power prior. Off by default.
//
// # Prediction
//
// Prob is σ(m/√(1+πa/8)). The paper's (35) is a lower bound for either label,
// and the two do not add up to 1.
//
// # Invariants
//
// Λ is the prior's diagonal plus a positive semidefinite sum, so every pivot of
// its Cholesky factor is at least the prior's precision. Both matrices are kept
// as one triangle and cannot become asymmetric. V is made anew from Λ at counts
// of updates divisible by Config.Refactor, after forgetting, when the residual
// |xᵀV(Λx) − xᵀx|/xᵀx, probed at every 64th update, exceeds 1e−8, and after an
// event with ha > 10⁶. All of that is a function of the events alone, and so are
// the bytes: the same events give the same bits on every CPU (package logistic,
// and kernels that round every product and sum in one order).
package blr
