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
// Each expert h_j gives both labels a probability. The ensemble's probability is their
// normalised product (1), so its log-odds are the sum of the experts' log-odds,
//
//	F(x) = Σ_j ln P(+1 | x, h_j)/P(−1 | x, h_j),   P(y | x, h₁…h_M) = σ(yF(x)).
//
// An expert is a hypothesis Z about the label, flipped with probability P_e (13):
// P(y|x,h) = (1−P_e)·P(Z=y|x,h) + P_e·P(Z=ȳ|x,h).
//
// # The constraint
//
// Let Dᵢ, the weight of example i, be proportional to the current ensemble's probability
// of its wrong label (7). By Jensen's inequality, adding an expert does not lower the
// likelihood if
//
//	Σ Dᵢ/P(yᵢ | xᵢ, h) ≤ 2                                   (6)
//
// For hypotheses that answer ±1 (POEBoost.DS, type Discrete) that means ε ≤ P_e ≤ ½, ε the
// weighted error (16). For hypotheses that give probabilities (POEBoost.CS, type
// Continuous) chords of a convex function bound (6) from above (30). The bound is at most
// 2 for ε_c ≤ P_e ≤ ½, ε_c a confidence-weighted error (32).
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
//   - Algorithms 2 and 3 omit Qᵢ. Then (7) does not hold, the likelihood may fall, and
//     POEBoost.DS is AdaBoost (DiscreteConfig.Printed).
//   - The paper's P_e = ε (Greedy) makes (6) exactly 2: no gain is guaranteed. The default
//     minimises (6): √ε/(√ε+√(1−ε)), half of the α. It predicts unseen data better
//     (MEASURED.md).
//   - ε = 0 would give an infinite α (18): it counts as 10⁻¹⁰, and training ends.
//     P_e of POEBoost.CS is at least 10⁻⁶.
//   - (32) is 0/0 if the hypothesis always answers ½; ε_c is ½ then.
//   - POEBoost.CS predicts by (24), (25), not (26): its experts have no α.
//   - Section 6 gives neither the length of the single gradient step nor a
//     standardisation: features are standardised here, a step has length 1, and
//     Newton, the default, fits the hypothesis to convergence instead (MEASURED.md).
//     Its rival there, Real AdaBoost, is in algos/lab/poe.
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
