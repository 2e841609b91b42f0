// Package boost implements boosting over simple rules: the data and the weak
// learners that hamlet's boosters share, and AdaBoost, Real AdaBoost, BHBoost and
// LogitTrees. AnyBoost, margins and their bounds are in algos/lab/boosting.
//
//	d, err := boost.Quantise(x, 64) // once per data set
//	if err != nil {
//		return err
//	}
//	b, err := boost.NewLogitTrees(d, y, boost.LogitTreesConfig{Weights: w})
//	if err != nil {
//		return err
//	}
//	err = b.Train(ctx)
//	p := b.Ensemble().Prob(x[0])
//
// # Data and candidates
//
// Columns are contiguous. Quantise divides them into at most 255 bins; NewData
// sorts them. A candidate is a feature and a threshold t, the midpoint between
// neighbouring values; it asks x_feature > t. Features are tried in order,
// thresholds ascending; the first of equal candidates wins.
//
// With labels yᵢ = ±1 and weights wᵢ, the edge of a hypothesis h is
//
//	edge = Σ wᵢ yᵢ h(xᵢ),   weighted error ε = Σ wᵢ [h(xᵢ) ≠ yᵢ] = (Σ wᵢ − edge)/2
//
// For the stump h = +1 above t, −1 at or below it, edge = S − 2·S(t), where S = Σ
// wᵢyᵢ and S(t) is its part at or below t. So one pass of additions over a column
// yields all its edges. Weights are in fixed point (Fix), so sums are exact. Both
// searches find the same stump if no feature has more than 255 distinct values. A
// round costs N·D additions and allocates nothing.
//
// # Boosters
//
// All return an Ensemble f(x) = Σ h(x) with P(y=+1 | x) = 1/(1+e^(−2f)). They share
// [Booster]. D is a distribution over the examples, D₁ ∝ ω, the sample weights.
//
//	AdaBoost      stumps ±α, α = ½ ln((1−ε)/ε); D ← D e^(−αyh)/Z
//	RealAdaBoost  partitions of least Σ√(W⁺W⁻), values ½ ln((W⁺+s)/(W⁻+s)); stumps or trees of depth 2
//	BHBoost       the bins of the feature of least Σ√(p⁺p⁻), scores like RealAdaBoost's values
//	LogitTrees    trees of depth 1 to 5, damped Newton steps on the logistic cost: the live ensemble
//
// Sources: the lecture slides "Boosting" (numbers below are theirs); Schapire and
// Singer 1999 for confidence-rated values. Departures from the slides: ε = 0 and ε ≥ ½
// end training (7). Scores are smoothed and have no 1/α (51, 53). Z in (52) has a sum,
// not the printed product.
//
// # Writing a booster
//
// Convert the round's signed weights with Fix, take the largest |edge| from Search.Best,
// and use Data.SignsTo and Data.Stump, as AdaBoost does. For criteria other than |edge|,
// Search.Below gives the sums at each cut. Numbers that are reported or enter a model (ε, a
// leaf) are computed from the rows in order, not from fixed point.
package boost
