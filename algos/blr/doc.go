// Package blr implements Bayesian logistic regression with a full Gaussian belief
// about the weights,
//
//	p(y | x, β) = σ(y·βᵀx),  y = ±1,   β ~ N(w, V),
//
// learnt one event at a time ([Posterior]):
//
//	p, err := blr.New(blr.Config{Dim: 3}) // x₀ = 1 is the constant
//	if err != nil {
//		return err
//	}
//	x := []float64{1, 2, -0.5}
//	m, a := p.Moments(x)        // log-odds z ~ N(m, a) before the event
//	site := p.Update(x, 1, φ) // y = +1, the label trusted with probability φ
//	fmt.Println(p.Prob(x), m, a)
//	_, err = p.Unlearn(site) // the label was wrong
//
// # One event
//
// The likelihood of one event depends on β only through z = βᵀx. A Gaussian in z
// replaces it, so that the belief stays Gaussian. In the natural parameters Λ = V⁻¹,
// η = Λw that is a sum,
//
//	Λ ← Λ + h·xxᵀ,   η ← η + (r + h·m′)·x,   m′ = m + r·a,
//
// with m = wᵀx and a = xᵀVx. V, w and ln|V| follow: with u = Vx,
//
//	w ← w + r·u                  (1)
//	V ← V − h/(1+ha)·uuᵀ         (2)
//	ln|V| ← ln|V| − ln(1+ha)     (3)
//
// (2) is the Sherman–Morrison inverse of Λ + h·xxᵀ, (3) the determinant lemma, and (1)
// is V′ times η′ multiplied out. An event costs O(D²), factorises nothing and allocates
// nothing.
//
// # Sites
//
// Only the scalars h and r depend on the approximation of the likelihood ([Approximation]). All
// sites take it to a power φ in (0, 2], the weight of the label, and solve their fixed
// point in scalars ([Approximation.Solve]). [JaakkolaJordan] bounds it from below and touches it
// at z = ±ξ: with λ(ξ) = tanh(ξ/2)/4ξ and q = 1 + 2φλa,
//
//	h = 2φλ,   r = (φy/2 − 2φλm)/q,   ξ² = a/q + ((m + φya/2)/q)².
//
// [RVGA] is the Gaussian nearest in KL(q‖·) to belief times likelihood. It is implicit:
// under z ~ N(m′, a/(1+ha)) after the event,
//
//	r = φy·E[σ(−yz)],   h = φ·E[σ(z)σ(−z)].
//
// RVGA, the default, takes the expectations by the probit approximation E[σ(z)] ≈
// σ(m′/√(1+πs′/8)), [ExactRVGA] by quadrature.
//
// # Prediction and correction
//
// For an x, everything follows from the moments m and a: [Predictive] (the log-odds of
// E[σ(z)]), its approximation [Moderate] with the probability Prob, and [Exact].
// Contributions split m and a among inputs. With a half-life
// of H events the sites fade by a power prior: ρ = 2^(−1/H), and every 50th update is
// followed by Λ ← ρ⁵⁰Λ + (1−ρ⁵⁰)Λ₀, η likewise. Refresh and Sweep solve sites again under
// the current belief, Unlearn subtracts a site, [Merge] adds the sites of posteriors that
// learnt different events.
//
// # Invariants
//
//   - Λ is the prior's diagonal plus a positive semidefinite sum, so every pivot of its
//     Cholesky factor is at least the prior's precision. Unlearn refuses to break that.
//   - Λ and V are kept as one triangle each and cannot become asymmetric.
//   - V is computed from Λ again at counts of updates divisible by Config.Refactor, after
//     forgetting and sweeps, after an event with ha > 10⁶, and when the residual
//     |xᵀV(Λx) − xᵀx|/xᵀx exceeds 1e−8. Every 64th update and every correction probe it.
//   - The same events give the same bits on every CPU (package logistic, and kernels
//     that round every product and sum in one order).
//
// Sources: J. Drugowitsch, Bayesian logistic regression (2010), whose equation numbers
// are quoted; M. Lambert, S. Bonnabel, F. Bach, The recursive variational Gaussian
// approximation, Statistics and Computing (2022). MEASURED.md has accuracy and speed.
package blr
