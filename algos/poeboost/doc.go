// Package poeboost implements boosting as a product of experts (N. U. Edakunni,
// G. Brown and T. Kovacs, Boosting as a product of experts, UAI 2011): an expert
// joins only if the likelihood of the training data does not fall.
//
//	b, err := poeboost.NewDiscrete(data, y, poeboost.DiscreteConfig{Rounds: 100})
//	if err != nil {
//		return err
//	}
//	if err := b.Train(ctx); err != nil {
//		return err
//	}
//	p := b.Ensemble().Prob(x) // or NewContinuous, for logistic experts
//
// # Model
//
// Each expert h_j gives both labels a probability, and the ensemble gives them the
// normalised product (1). Its log-odds are the sum of the experts',
//
//	F(x) = Σ_j ln P(+1 | x, h_j)/P(−1 | x, h_j),   P(y | x, h₁…h_M) = σ(yF(x)).
//
// An expert is a hypothesis Z about the label that is distorted with probability
// P_e (13): P(y|x,h) = (1−P_e)·P(Z=y|x,h) + P_e·P(Z=ȳ|x,h).
//
// # The constraint
//
// Let Dᵢ, the weight of example i, be proportional to the probability with which
// the ensemble so far is mistaken about it (7). By Jensen's inequality the
// likelihood does not fall when an expert joins with
//
//	Σ Dᵢ/P(yᵢ | xᵢ, h) ≤ 2                                   (6)
//
// For hypotheses that are certain (POEBoost.DS, type Discrete) that is ε ≤ P_e ≤ ½,
// ε the weighted error (16). For hypotheses that give probabilities (POEBoost.CS,
// type Continuous) chords of a convex function bound (6) from above (30), and the
// bound is at most 2 for ε_c ≤ P_e ≤ ½, ε_c a confidence-weighted error (32).
//
// # Weights
//
// From round to round D follows the recursion (8), which divides by the normaliser
// Qᵢ (9). Both boosters use the closed form Dᵢ ∝ σ(−yᵢF(xᵢ)): no error accumulates, and
// nothing underflows. With sample weights ω, Dᵢ ∝ ωᵢσ(−yᵢF(xᵢ)) and the likelihood is
// weighted by ω; the argument for (6) is the same.
//
// # Where this departs from the print
//
//   - Algorithms 2 and 3 leave Qᵢ out. Then (7) does not hold, no likelihood is
//     guarded, and POEBoost.DS is AdaBoost (DiscreteConfig.Printed shows that).
//   - The paper's P_e = ε makes (6) exactly 2: no gain is guaranteed. The default
//     here is the value that makes (6) least, √ε/(√ε+√(1−ε)), half of the α: its
//     likelihood of unseen data is better (MEASURED.md). Greedy is the paper's.
//   - ε = 0 would give an infinite α (18): it counts as 10⁻¹⁰, and training ends.
//     P_e of POEBoost.CS is at least 10⁻⁶.
//   - (32) is 0/0 where the hypothesis says ½ of everything, and is ½ then.
//   - POEBoost.CS predicts by the product of its experts (24), (25); there is no α
//     that would make (26) of it.
//   - Section 6 gives neither the length of the single gradient step nor a
//     standardisation: features are standardised here, a step has length 1, and
//     Newton, the default, fits the hypothesis to convergence instead (MEASURED.md).
//   - Appendix B: (37) lacks brackets around both sums, and x₂ of (42) is
//     (P_e + 1 − P_e)/2 = ½, so that (44) holds.
//
// # Costs
//
// A round of POEBoost.DS is one search for a stump and some 2N exponentials. A round of
// POEBoost.CS is D·N exponentials by a gradient step, some four times as many by Newton,
// and some 8·D·B with N·D additions where the rows of a bin are pooled
// (ContinuousConfig.Pooled), B bins a feature. No round allocates. The same data and
// configuration give the same bits on every CPU.
package poeboost
