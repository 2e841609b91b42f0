// Package boost implements boosting over simple rules of thumb: the data and the
// weak learners that every booster of hamlet shares, and AdaBoost, Real AdaBoost,
// BHBoost and AnyBoost.
//
// # Data and candidates
//
// Data is made once per data set: columns contiguous and either sorted (NewData)
// or divided into at most 255 bins (Quantise). A candidate is a feature and a
// threshold t, the midpoint between neighbouring values; it asks x_feature > t.
// Features are taken in order, thresholds ascending, and of equal candidates the
// first wins.
//
// With labels yᵢ = ±1 and weights wᵢ, the edge of a hypothesis h is
//
//	edge = Σ wᵢ yᵢ h(xᵢ),   weighted error ε = Σ wᵢ [h(xᵢ) ≠ yᵢ] = (Σ wᵢ − edge)/2
//
// and for the stump h = +1 above t, −1 at or below it, edge = S − 2·S(t), where
// S = Σ wᵢyᵢ and S(t) is the part of it at or below t. So one pass of additions
// over a column yields every candidate of it: in sorted order, or into a
// histogram of bins that is then summed up. Weights are in fixed point for that
// (Fix), so sums are exact and both searches find the same stump wherever they
// have the same candidates: where every feature has at most 255 distinct values.
// A round costs N·D additions and allocates nothing.
//
// # Boosters
//
// All leave an Ensemble f(x) = Σ h(x) with P(y=+1 | x) = 1/(1+e^(−2f)), take
// sample weights ω, run round by round and stop between rounds when their context
// is cancelled. In each, D is a distribution over the examples, D₁ ∝ ω.
//
//	AdaBoost      stumps ±α, α = ½ ln((1−ε)/ε); D ← D e^(−αyh)/Z
//	RealAdaBoost  partitions of least Σ√(W⁺W⁻), values ½ ln((W⁺+s)/(W⁻+s)); stumps or trees of depth 2
//	BHBoost       bins of one feature, the feature of least Σ√(p⁺p⁻), scores as above
//	AnyBoost      stumps down the gradient of Σ ω C(yf): exp, logistic or tanh; line search or a fixed step
//	LogitTrees    the logistic cost over trees whose leaves are damped Newton steps: the live ensemble
//
// Sources: the lecture slides "Boosting" (numbers below are theirs), with the
// departures that follow; Schapire and Singer 1999 for confidence-rated values;
// Schapire, Freund, Bartlett and Lee 1998 for Margins; Mason, Baxter, Bartlett and
// Frean 1999 for AnyBoost. Where we depart from the print: ε = 0 and ε ≥ ½ end
// training (7); D in AnyBoost is C′(yᵢfᵢ)/ΣC′(yⱼfⱼ), positive and a distribution
// (59), and C(f) the mean of C(yf) (57); scores are smoothed, so that a bin that
// lacks a class stays finite, and have no 1/α (51, 53); Z in (52) has a sum for
// the printed product. The training error counts f = 0 as −1.
//
// # To build a booster upon it
//
//	d, err := boost.Quantise(x, 64)      // once per data set; or boost.NewData(x)
//	s := d.NewSearch()                   // once per booster
//	signed := make([]int64, d.Rows())
//	h := make([]float64, d.Rows())
//	for range rounds {
//		unit := boost.Fix(signed, w, y)  // the round's weights and the labels
//		c, ok := s.Best(signed)          // the largest |edge|; false: no candidate
//		edge := float64(c.Edge) * unit   // of the stump with polarity +1
//		d.SignsTo(h, c)                  // that stump on the rows, ±1
//		stump := d.Stump(c)              // in its better polarity
//	}
//
// A booster that ranks candidates by anything monotone in the edge or its size (a
// weighted error, or VIBoost's approximate mode, since the weights of the rows
// that a stump gets right and wrong add up to the same for all) uses Best. One
// that ranks them by something else takes Below(feature, w), the sums at or below
// each cut, for as many vectors of weights as it needs. Numbers that are reported
// or that enter a model (an ε, a leaf) are not taken from fixed point but summed
// again over the winner's rows, in the order given.
package boost
