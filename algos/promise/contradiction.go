package promise

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
// It rises with x, so its expectation is at most 1. R ← max(1, R)·L is Page's test (Biometrika 41, 1954), which
// forgets a past that speaks against k. R is at most an e-detector: the mean number of verdicts until one of K of
// them reaches cK is at least c (Shin, Ramdas and Rinaldo, "E-detectors", arXiv:2203.03532, 2022).
//
// q is the upper end of the interval of the probability, and [Slips]. One label in so many may be
// a slip of the hand, whatever p says.
//
// "Given all before" is a premise. A model that learns keeps it if it has learnt all before, and each label came
// before the next verdict. Labels that come late break it, and so do verdicts whose errors come together: copies of
// one campaign are wrong all at once, as p did not know. Then R may reach its end sooner than (2) says.
type Contradiction struct {
	runs  [len(oddsFactors)]run
	found Excess
}

// Slips is the share of labels that may be wrong by a slip.
const Slips = 0.002

// patience is c: the least mean number of verdicts until p that is right seems to be contradicted, under the premise
// of (2).
const patience = 1e6

// oddsFactors are k of (2). MEASURED.md has what they find.
var oddsFactors = [...]float64{4, 16, 64}

const (
	evident = patience * float64(len(oddsFactors))
	most    = 1e250 // of R; more says nothing more
)

// A run is R of one k, and the verdicts since it was at most 1 last.
type run struct {
	ratio float64
	since Excess
}

// An Excess is a run of verdicts with more errors than p said. It is zero if there was none.
type Excess struct {
	Verdicts int
	Wrong    int     // by labels
	Expected float64 // of all of them

	ratio float64 // R
}

// Add counts a verdict: p is the probability that it is wrong, high the upper end of its interval. wrong says
// that a label contradicts the verdict.
func (c *Contradiction) Add(p, high float64, wrong bool) {
	q := min(1, high+Slips)
	for i, k := range oddsFactors {
		r := &c.runs[i]
		if r.ratio <= 1 {
			*r = run{ratio: 1}
		}
		r.since.Verdicts++
		r.since.Expected += p
		r.ratio /= 1 + float64((k-1)*q)
		if wrong {
			r.since.Wrong++
			r.ratio = min(k*r.ratio, most)
		}
		if r.ratio >= evident && r.ratio >= c.found.ratio {
			c.found = r.since
			c.found.ratio = r.ratio
		}
	}
}

// Excess returns the run that contradicts p most. ok is false if none does.
func (c *Contradiction) Excess() (e Excess, ok bool) { return c.found, c.found.ratio > 0 }
