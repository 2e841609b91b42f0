package model

// Label trust. With q the probability that the head gives to the label before
// it learns it, and ε the rate at which labels are wrong,
//
//	φ = (1−ε)q / ((1−ε)q + ε(1−q))                       (1)
//
// is the probability that the label is true. ε is what φ says on average:
//
//	ε ← ε + max(0.01, 1/(t+50))·(1−φ−ε),  ε ≥ 0.0003     (2)
//
// t events learnt before. It starts at 0.1: from 0.01 it can settle in the fixed
// point where no label is wrong and p saturates. The head learns the likelihood
// raised to φ, the experts learn with weight (1) at min(max(0.45, ε), 5ε), where ε
// is that of the label's source (3).
const (
	firstFlipRate  = 0.1
	leastFlipRate  = 0.0003
	slowestRate    = 0.01
	warmUp         = 50
	expertFactor   = 5
	expertFlipRate = 0.45

	// leastTrust keeps a label that contradicts a saturated head a label: (1)
	// may round to 0, and a site needs a positive weight.
	leastTrust = 1e-12
)

// A trusting says how a half takes its labels.
type trusting struct {
	weighs   bool // by their trust; else each counts in full
	bySource bool // with the flip rate of each source; else with the common one
}

// trust is φ of equation (1).
func trust(q, ε float64) float64 {
	right, wrong := float64((1-ε)*q), float64(ε*(1-q))
	return max(leastTrust, right/(right+wrong))
}

// nextFlipRate is ε of equation (2).
func nextFlipRate(ε, φ float64, events uint64) float64 {
	rate := max(slowestRate, 1/(float64(events)+warmUp))
	return max(leastFlipRate, ε+float64(rate*(1-φ-ε)))
}

// expertTrust is the weight with which the experts learn.
func expertTrust(q, ε float64) float64 {
	return trust(q, min(max(expertFlipRate, ε), expertFactor*ε))
}
