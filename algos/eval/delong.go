package eval

import (
	"cmp"
	"math"
	"slices"
)

// ROCAInterval returns 1-ROCA% of points and its central interval at z standard deviations:
// 1.645 gives 90 %. The variance of the area A below the ROC curve is DeLong's,
//
//	Var A = Var(V₁₀)/m + Var(V₀₁)/n,
//
// with V₁₀ for each of m spams the fraction of ham below it, and V₀₁ for each of n hams the
// fraction of spam above it (DeLong, DeLong and Clarke-Pearson 1988, "Comparing the areas
// under two or more correlated ROC curves", Biometrics 44; by midranks, Sun and Xu 2014). The
// interval is symmetric in logit A, so that it stays in [0, 100].
//
// If no pair is in the wrong order, the interval ends where each of the rarer class would be
// right with a probability of 5 %. An interval with errors reaches at least as far. The same
// holds at the other end, where all pairs are wrong.
//
// The interval is all of 0 to 100 where nothing estimates the variance. Then a class has fewer
// than two points, or some pairs are wrong while neither V₁₀ nor V₀₁ varies.
//
// All three are NaN if a class is missing. Points whose log-odds are NaN are tied, and below
// all others. O(N log N).
func ROCAInterval(points []Point, z float64) (roca, low, high float64) {
	all := slices.Clone(points)
	slices.SortFunc(all, func(a, b Point) int { return cmp.Compare(a.LogOdds, b.LogOdds) })
	var count [2]float64 // of ham, of spam
	for _, p := range all {
		count[0], count[1] = count[0]+p.Ham, count[1]+p.Spam
	}
	n, m := count[0], count[1]
	if n == 0 || m == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	var sum, squares [2]float64 // of 1−V, by class
	least, most := [2]float64{1, 1}, [2]float64{}
	var below [2]float64
	for i := 0; i < len(all); {
		var tied [2]float64
		j := i
		for ; j < len(all) && cmp.Compare(all[j].LogOdds, all[i].LogOdds) == 0; j++ { // NaN is itself there
			tied[0], tied[1] = tied[0]+all[j].Ham, tied[1]+all[j].Spam
		}
		ham := (m - below[1] - float64(tied[1]/2)) / m // of spam above a ham here
		spam := (below[0] + float64(tied[0]/2)) / n    // of ham below a spam here
		for c, v := range [2]float64{1 - ham, 1 - spam} {
			sum[c] += float64(tied[c] * v)
			squares[c] += float64(tied[c] * v * v)
			if tied[c] > 0 {
				least[c], most[c] = min(least[c], v), max(most[c], v)
			}
		}
		below[0], below[1] = below[0]+tied[0], below[1]+tied[1]
		i = j
	}
	wrong := sum[1] / m
	end := float64(100 * math.Pow(0.05, 1/min(m, n)))
	switch {
	case min(m, n) < 2:
		return 100 * wrong, 0, 100
	case wrong <= 0:
		return 0, 0, 100 - end
	case wrong >= 1:
		return 100, end, 100
	case least == most:
		return 100 * wrong, 0, 100
	}
	variance := 0.0
	for c, k := range count {
		mean := sum[c] / k
		variance += max(0, squares[c]/k-float64(mean*mean)) / (k - 1)
	}
	logit, spread := math.Log(wrong/(1-wrong)), z*math.Sqrt(variance)/(wrong*(1-wrong))
	at := func(x float64) float64 { return 100 / (1 + math.Exp(-x)) }
	return 100 * wrong, min(at(logit-spread), end), max(at(logit+spread), 100-end)
}
