package promise

import "math"

// A Contradiction gathers evidence that more verdicts are wrong than p said. The zero value is empty. It is not
// safe for concurrent use.
//
// A verdict counts as wrong if a label says so, and as right if none does. So labels need not be a sample. People
// may label only what they see wrong: that can show too many errors, and never makes a right verdict wrong.
//
// Let x be 1 for a verdict that is known to be wrong, else 0, and q at least the probability of that, given all
// before. For odds of an error that are k times as high, the likelihood ratio is
//
//	L = k^x / (1 + (k−1)q).   (2)
//
// It rises with x, so its expectation is at most 1. S ← max(0, S) + ln L is Page's sum (Biometrika 41, 1954), which
// forgets a past that speaks against k. exp(S) is at most an e-detector: the mean number of verdicts until one of K
// sums reaches ln(cK) is at least c (Shin, Ramdas and Rinaldo, "E-detectors", arXiv:2203.03532, 2022).
//
// q is the upper end of the interval of the probability, and [Slips]. One label in so many may be
// a slip of the hand, whatever p says.
type Contradiction struct {
	sums  [len(oddsFactors)]pageSum
	found Excess
}

// Slips is the share of labels that may be wrong by a slip.
const Slips = 0.002

// patience is c: the least mean number of verdicts until p that is right seems to be contradicted.
const patience = 1e6

// oddsFactors are k of (2). MEASURED.md has what they find.
var oddsFactors = [...]float64{4, 16, 64}

var evident = math.Log(patience * float64(len(oddsFactors)))

// A pageSum is S of one k, and the verdicts since it was at most 0 last.
type pageSum struct {
	level float64
	since Excess
}

// An Excess is a run of verdicts with more errors than p said. It is zero if there was none.
type Excess struct {
	Verdicts int
	Wrong    int     // by labels
	Expected float64 // of all of them

	evidence float64 // nats
}

// Add counts a verdict: p is the probability that it is wrong, high the upper end of its interval. wrong says
// that a label contradicts the verdict.
func (c *Contradiction) Add(p, high float64, wrong bool) {
	q := min(1, high+Slips)
	for i, k := range oddsFactors {
		s := &c.sums[i]
		if s.level <= 0 {
			*s = pageSum{}
		}
		s.since.Verdicts++
		s.since.Expected += p
		s.level -= math.Log1p((k - 1) * q)
		if wrong {
			s.since.Wrong++
			s.level += math.Log(k)
		}
		if s.level >= evident && s.level > c.found.evidence {
			c.found = s.since
			c.found.evidence = s.level
		}
	}
}

// Excess returns the run that contradicts p most. ok is false if none does.
func (c *Contradiction) Excess() (e Excess, ok bool) { return c.found, c.found.evidence > 0 }
