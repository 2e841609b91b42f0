package confseq

import "math"

// Evidence that a share is small.
//
// Numbers x₁, x₂, … are 0 or 1, with weights u_i. A [Below] answers after each of them: is the share of
// ones below b? For θ in [0, 1) let
//
//	M_t(θ) = Π (1 − θ·u_i·(x_i − b)/(1−b)),   0 < u_i ≤ 1 where x_i = 1.   (4)
//
// If the expectation of u_i·(x_i − b) given all before is at least 0, that of a factor is at most 1. So
// M(θ) is a test supermartingale of "the share is at least b", and so is its mean over θ. By Ville's
// inequality the mean ever reaches 1/a with a probability of at most a. This is the capital of the bet θ of
// Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
// Statistical Society B 86(1), 2024. With u = 1 it is the mean of the likelihood ratios of
// the shares (1−θ)b and b.
//
// The expectations may drift: 1 + x ≤ eˣ, so that M_t(θ)·exp(θ·Σ E[u_i(x_i − b)]/(1−b)) is a
// supermartingale too. If the average of these expectations up to t is at least 0, M_t is at most
// that. So what is shown is that the average so far is below b.
//
// ln(1 − θu) and ln(1 + cu) are concave in u and 0 at u = 0. Above their chords they are at least
//
//	ln(1 − θu) ≥ u·ln(1 − θ)             for 0 ≤ u ≤ 1,
//	ln(1 + cu) ≥ u/U·ln(1 + cU)          for 0 ≤ u ≤ U.   (5)
//
// So two sums of weights suffice, and with all weights 1 nothing is given away.

// bets are the θ of (4) with the logarithms of their shares in the mean: θ_j = .9·2^(−j/2), with shares
// in proportion to 2^(−j). A share of none in n has the evidence 1/a = 10 once nb ≥ 3.0; no bet
// needs less than ln 10 = 2.3. Up to nb = 600 the mean needs at most 15 % more than the best bet in
// hindsight but for none, where it is 31 % (TestBets; promise/MEASURED.md has other means).
var bets = func() (all [14]struct{ θ, lose, share float64 }) {
	total := 2 - math.Pow(2, 1-float64(len(all)))
	for j := range all {
		θ := 0.9 * math.Pow(2, -float64(j)/2)
		all[j].θ, all[j].lose = θ, math.Log1p(-θ)
		all[j].share = -float64(float64(j)*math.Ln2) - math.Log(total)
	}
	return all
}()

// A Below says how much shows that a share is below a limit. It has no state but its configuration, and
// may be used concurrently.
type Below struct {
	most float64
	gain [len(bets)]float64 // of a zero of weight most: ln(1 + θ·most·b/(1−b))
}

// NewBelow returns the evidence for a limit b, 0 < b < 1. most is the largest weight of a 0, and at least
// 1. A 1 has a weight of at most 1.
func NewBelow(limit, most float64) Below {
	e := Below{most: most}
	for j := range bets {
		e.gain[j] = math.Log1p(bets[j].θ * most * limit / (1 - limit))
	}
	return e
}

// Log returns the logarithm of the evidence: of the mean of (4), by (5). ones and zeros are the sums of
// weights of the numbers that are 1 and 0. If the share is not below the limit, Log ever reaches ln(1/a) with
// a probability of at most a. It rises with limit and with zeros, and falls if weight moves from
// zeros to ones.
func (e *Below) Log(ones, zeros float64) float64 {
	var terms [len(bets)]float64
	highest := math.Inf(-1)
	for j := range bets {
		terms[j] = bets[j].share + float64(ones*bets[j].lose) + float64(zeros/e.most*e.gain[j])
		highest = max(highest, terms[j])
	}
	sum := 0.0
	for _, t := range terms {
		if t > highest-40 { // a smaller one does not change the sum
			sum += math.Exp(t - highest)
		}
	}
	return highest + math.Log(sum)
}

// Zeros returns the least sum of weights of zeros with which Log reaches evidence > 0, in nats.
func (e *Below) Zeros(ones, evidence float64) float64 {
	low, high := 0.0, 1.0
	for e.Log(ones, high) < evidence {
		low, high = high, 2*high
	}
	for range 60 {
		if middle := (low + high) / 2; e.Log(ones, middle) < evidence {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
