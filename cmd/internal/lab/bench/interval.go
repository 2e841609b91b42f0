package bench

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// poisson returns the exact central 95 % interval of a Poisson mean, given the count k
// (Garwood, Fiducial limits for the Poisson distribution, 1936). At lo, P(count ≥ k) is
// 2.5 %; at hi, P(count ≤ k) is 2.5 %.
func poisson(k int) (lo, hi float64) {
	if k > 0 {
		lo = mathext.GammaIncRegInv(float64(k), 0.025)
	}
	return lo, mathext.GammaIncRegInv(float64(k+1), 0.975)
}

// median returns the median of delays with its 95 % bootstrap interval. A delay of +Inf
// means that no alarm was raised. Resample r draws from PCG(seed, r).
func median(delays []float64, resamples int, seed uint64) estimate {
	sample := slices.Clone(delays)
	middle := func() float64 {
		slices.Sort(sample)
		return quantile(sample, 0.5)
	}
	e := estimate{value: middle()}
	drawn := make([]float64, resamples)
	for k := range drawn {
		r := rand.New(rand.NewPCG(seed, uint64(k)))
		for i := range sample {
			sample[i] = delays[r.IntN(len(delays))]
		}
		drawn[k] = middle()
	}
	slices.Sort(drawn)
	e.lo, e.hi = quantile(drawn, 0.025), quantile(drawn, 0.975)
	return e
}

// chance is the probability that a random alarm, with a rate per event, is raised within
// a number of events.
func chance(rate float64, events int) float64 { return -math.Expm1(-rate * float64(events)) }
