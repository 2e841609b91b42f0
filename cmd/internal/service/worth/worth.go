// Package worth says what the label of a message would teach. Review shows people the mail of the highest
// worth, and an oracle is asked about no other.
package worth

import (
	"math"

	"hamlet/algos/blr"
	"hamlet/algos/model"
)

// Of returns what the label of a message would teach, from the answer p and its 90 %
// interval, as the journal has them: the mutual information of the label and the head's
// weights, in nats ([blr.Information], the score of BALD), times p(1−p), by which the experts
// learn. With s the half width of the interval in log-odds over 1.645, and m its middle,
//
//	worth = I(m, s²)·p(1−p).
//
// It is 0 for numbers that are no answer. It costs 30 to 140 exponentials, and needs neither the
// model nor the message.
//
// `hamlet-lab bench review` compares it with what needs the model: cmd/internal/lab/bench/MEASURED.md
// says that it is as good as the expected fall of the head's doubt, and as the doubt of p.
func Of(p, lo, hi float64) float64 {
	if !(0 <= lo && lo <= p && p <= hi && hi <= 1) {
		return 0
	}
	m, s := logOdds(lo, hi)
	return blr.Information(m, s*s) * p * (1 - p)
}

// nearest is how near to 0 or 1 the end of an interval may be.
const nearest = 1e-12

// logOdds returns the mean and the standard deviation of the log-odds that have the 90 %
// interval lo to hi.
func logOdds(lo, hi float64) (mean, sd float64) {
	a, b := Logit(lo), Logit(hi)
	return (a + b) / 2, (b - a) / (2 * model.Z90)
}

// Logit returns ln p/(1−p), of a p that is at least nearest from 0 and 1.
func Logit(p float64) float64 {
	p = min(max(p, nearest), 1-nearest)
	return math.Log(p) - math.Log1p(-p)
}
