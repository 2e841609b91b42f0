package fit

import (
	"math"
	"testing"
)

// Reference: bblr.txt, eq. 10: loss_start and loss_end are Σ σ(−γ·y·wᵀx) + λ/2·|w|², and
// the probability is σ(γ·wᵀx).
func TestSigmoidLossByDefinition(t *testing.T) {
	x, y, ω := weightedRows()
	w0 := []float64{1, -0.5, 0}
	r := reply[bblrFitReply](t, requestLine(t, "bblr.fit", "x", x, "y", y, "weights", ω, "variant", "sigmoid", "w0", w0, "lambda", 0.05))
	loss := func(w []float64) float64 {
		sum := 0.0
		for j := range w {
			sum += 0.05 / 2 * w[j] * w[j]
		}
		for i, row := range x {
			z := 0.0
			for j := range w {
				z += w[j] * row[j]
			}
			sum += ω[i] / (1 + math.Exp(r.Gamma*y[i]*z))
		}
		return sum
	}
	closeTo(t, "loss at the start", r.LossStart, loss(w0))
	closeTo(t, "loss at the end", r.LossEnd, loss(r.W))
	if r.LossEnd >= r.LossStart {
		t.Errorf("loss %v at the start, %v at the end", r.LossStart, r.LossEnd)
	}
}

// Real AdaBoost over logistic hypotheses: with step and rate 1, the first round's weight
// on each feature is ½ΣDyu, and f is half of the log-odds.
func TestRealAdaBoostLogisticByHand(t *testing.T) {
	r := reply[realAdaBoostReply](t, `{"algorithm": "realadaboost", "learner": "logistic", "rounds": 1, `+fourRows+`}`)
	o := r.Rounds[0]
	sd := math.Sqrt(1.25)
	w := 0.5 * (1.5 - 0.5 - 0.5 + 1.5) / 4 / sd // Σ yu/4, u = (x − 2.5)/sd
	sameNumber(t, "weight", *o.Weight, w)
	sameNumber(t, "bias", *o.Bias, 0)
	z, p := 0.0, 0.0
	for i, y := range []float64{-1, 1, -1, 1} {
		u := (float64(i+1) - 2.5) / sd
		z += math.Exp(-y*w*u/2) / 4
		p += 1 / (1 + math.Exp(-y*w*u)) / 4
		sameNumber(t, "f", r.F[i], w*u/2)
	}
	sameNumber(t, "Z", o.Z, z)
	sameNumber(t, "mean p", *o.MeanP, p)
}
