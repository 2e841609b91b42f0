package bench

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mathext"

	"hamlet/algos/eval"
)

// An interval is a value and the ends of its 95 % interval. NaN means undefined.
type interval struct{ value, lo, hi float64 }

// MarshalJSON writes null for what is undefined or infinite.
func (v interval) MarshalJSON() ([]byte, error) {
	finite := func(v float64) eval.Measure {
		if math.IsInf(v, 0) {
			v = math.NaN()
		}
		return eval.Measure(v)
	}
	return json.Marshal(struct {
		Value eval.Measure `json:"value"`
		Lo    eval.Measure `json:"lo"`
		Hi    eval.Measure `json:"hi"`
	}{finite(v.value), finite(v.lo), finite(v.hi)})
}

// A comparison holds ratios of hamlet's figures to another filter's, on the same
// resamples.
type comparison struct {
	Other string   `json:"filter"`
	ROCA  interval `json:"roca"`
	CPU   interval `json:"cpu_seconds"`
}

// bootstrap measures the rankings with percentile intervals (Efron and Tibshirani
// 1993, chapters 8 and 13). All rankings are of the same n messages. A resample is n
// draws with replacement, the same for every ranking, so ratios are paired. Resample r
// draws from PCG(seed, r), so concurrency does not affect the result. A figure's
// interval leaves out resamples where it is undefined. The cost is O(n) per resample and
// ranking.
//
// The interval of the calibration error is biased upwards: resampling adds noise.
func bootstrap(ctx context.Context, rankings []*ranking, resamples int,
	seed uint64) ([][figures]interval, []comparison, error) {
	n := len(rankings[0].rows)
	ones := make([]int32, n)
	for i := range ones {
		ones[i] = 1
	}
	point := make([]values, len(rankings))
	for f, s := range rankings {
		point[f] = s.measure(ones)
	}
	drawn := make([][]values, resamples)
	g, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	for k := range workers {
		g.Go(func() error {
			weights := make([]int32, n)
			for r := k; r < resamples; r += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				resample(weights, seed, uint64(r))
				drawn[r] = make([]values, len(rankings))
				for f, s := range rankings {
					drawn[r][f] = s.measure(weights)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	all := make([][figures]interval, len(rankings))
	for f := range rankings {
		for j := range figures {
			all[f][j] = percentiles(point[f][j], drawn, func(v []values) float64 { return v[f][j] })
		}
	}
	pairs := make([]comparison, len(rankings)-1)
	for f := range pairs {
		ratio := func(j figure) interval {
			return percentiles(point[0][j]/point[f+1][j], drawn, func(v []values) float64 { return v[0][j] / v[f+1][j] })
		}
		pairs[f] = comparison{ROCA: ratio(roca), CPU: ratio(cpuTime)}
	}
	return all, pairs, nil
}

// resample counts how often each of n messages is drawn in n draws.
func resample(weights []int32, seed, r uint64) {
	clear(weights)
	random := rand.New(rand.NewPCG(seed, r))
	for range weights {
		weights[random.IntN(len(weights))]++
	}
}

// percentiles returns value with a figure's 2.5 % and 97.5 % quantiles over the resamples.
func percentiles(value float64, drawn [][]values, of func([]values) float64) interval {
	sample := make([]float64, 0, len(drawn))
	for _, v := range drawn {
		if x := of(v); !math.IsNaN(x) {
			sample = append(sample, x)
		}
	}
	slices.Sort(sample)
	if math.IsNaN(value) || len(sample) == 0 {
		return interval{value, math.NaN(), math.NaN()}
	}
	return interval{value, quantile(sample, 0.025), quantile(sample, 0.975)}
}

// quantile interpolates between the order statistics of a sorted sample
// (Hyndman and Fan's type 7).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if fraction := at - float64(i); fraction > 0 && sorted[i] != sorted[i+1] {
		return sorted[i] + fraction*(sorted[i+1]-sorted[i])
	}
	return sorted[i]
}

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
func median(delays []float64, resamples int, seed uint64) interval {
	sample := slices.Clone(delays)
	middle := func() float64 {
		slices.Sort(sample)
		return quantile(sample, 0.5)
	}
	e := interval{value: middle()}
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
