package promise

import (
	"fmt"

	"gonum.org/v1/gonum/mathext"
)

// Expected counts the errors that are to be expected of verdicts, without labels: from p alone, and from
// the model's doubt about p. The zero value is empty. Add must not be called concurrently with any
// method.
//
// Let p_i be the probability that verdict i is wrong, and errors be independent. Given the p_i, their number has the
// Poisson binomial distribution: mean Σp, variance Σp(1−p). A p is itself known up to a
// standard deviation d. All d come from one belief about one model's weights, so their errors
// may all go the same way. The standard deviation of a sum is at most Σd. So
//
//	mean = Σp,  variance = Σp(1−p) + (Σd)².   (1)
//
// Copies of one campaign are wrong together, and Σp(1−p) is too small for them. (1) says nothing of a world that
// changed: then p is wrong by more than its interval says.
type Expected struct{ Lost, Missed Count }

// z90 is the normal distribution's 95 % quantile: an interval of 90 % has 2·z90 standard deviations.
const z90 = 1.6448536269514722

// Add counts a verdict. low ≤ p ≤ high is the 90 % interval of p, the probability of spam. spam says that
// the verdict was spam: an error is then a ham that is lost, else a spam that is missed.
func (e *Expected) Add(p, low, high float64, spam bool) {
	if !(0 <= low && low <= p && p <= high && high <= 1) {
		panic(fmt.Sprintf("promise: p %v is not in [%v, %v]", p, low, high))
	}
	d := (high - low) / (2 * z90)
	if spam {
		e.Lost.add(1-p, d)
	} else {
		e.Missed.add(p, d)
	}
}

// A Count is a number of errors that is not known.
type Count struct {
	N           int     // verdicts
	Mean        float64 // Σp, p the probability that a verdict is wrong
	Independent float64 // Σp(1−p)
	Doubt       float64 // Σd
}

func (c *Count) add(p, d float64) {
	c.N++
	c.Mean += p
	c.Independent += float64(p * (1 - p))
	c.Doubt += d
}

// Plus returns the count of both, of different verdicts by the same model.
func (c Count) Plus(o Count) Count {
	return Count{c.N + o.N, c.Mean + o.Mean, c.Independent + o.Independent, c.Doubt + o.Doubt}
}

// Interval returns a 90 % interval for the number of errors: the 5 % and the 95 % quantile of the
// distribution of whole numbers with the mean and the variance of (1). That is a negative binomial
// one where the variance is above the mean, else a binomial one.
func (c Count) Interval() (low, high int) {
	if c.Mean < 1e-100 { // its square has no value, or few digits
		return 0, 0
	}
	variance := c.Independent + float64(c.Doubt*c.Doubt)
	return c.quantile(variance, 0.05), c.quantile(variance, 0.95)
}

// quantile returns the least k ≤ N with P(X ≤ k) ≥ q.
func (c Count) quantile(variance, q float64) int {
	below, k := -1, 1 // P(X ≤ below) < q
	for k < c.N && atMost(k, c.Mean, variance) < q {
		below, k = k, 2*k
	}
	k = min(k, c.N)
	for k-below > 1 {
		if middle := (below + k) / 2; atMost(middle, c.Mean, variance) < q {
			below = middle
		} else {
			k = middle
		}
	}
	return k
}

// atMost returns P(X ≤ k) of the whole number X with this mean and variance. Where both agree within
// a thousandth, X has the Poisson distribution.
func atMost(k int, mean, variance float64) float64 {
	x := float64(k)
	switch excess := variance - mean; {
	case excess > 1e-3*mean:
		r := mean * mean / excess // NB(r, mean/variance)
		return mathext.RegIncBeta(r, x+1, mean/variance)
	case excess < -1e-3*mean:
		n := mean * mean / -excess // B(n, 1 − variance/mean)
		if x >= n {
			return 1
		}
		return mathext.RegIncBeta(n-x, x+1, variance/mean)
	default:
		return mathext.GammaIncRegComp(x+1, mean)
	}
}
