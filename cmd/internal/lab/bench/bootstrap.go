package bench

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// An estimate is a value and its 95 % bootstrap interval. NaN means undefined.
type estimate struct{ value, lo, hi float64 }

// A comparison holds ratios of hamlet's figures to another filter's, on the same
// resamples.
type comparison struct {
	other     string
	roca, cpu estimate
}

// bootstrap measures the rankings with percentile intervals (Efron and Tibshirani
// 1993, chapters 8 and 13). All rankings are of the same n messages. A resample is n
// draws with replacement, the same for every ranking, so ratios are paired. Resample r
// draws from PCG(seed, r), so concurrency does not affect the result. A figure's
// interval leaves out resamples where it is undefined. The cost is O(n) per resample and
// ranking.
//
// The interval of the calibration error is biased upwards: resampling adds noise.
func bootstrap(ctx context.Context, rankings []*ranking, resamples int, seed uint64) ([][figures]estimate, []comparison, error) {
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
	all := make([][figures]estimate, len(rankings))
	for f := range rankings {
		for j := range figures {
			all[f][j] = interval(point[f][j], drawn, func(v []values) float64 { return v[f][j] })
		}
	}
	pairs := make([]comparison, len(rankings)-1)
	for f := range pairs {
		ratio := func(j figure) estimate {
			return interval(point[0][j]/point[f+1][j], drawn, func(v []values) float64 { return v[0][j] / v[f+1][j] })
		}
		pairs[f] = comparison{roca: ratio(roca), cpu: ratio(cpuTime)}
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

// interval returns value with a figure's 2.5 % and 97.5 % quantiles over the resamples.
func interval(value float64, drawn [][]values, of func([]values) float64) estimate {
	sample := make([]float64, 0, len(drawn))
	for _, v := range drawn {
		if x := of(v); !math.IsNaN(x) {
			sample = append(sample, x)
		}
	}
	slices.Sort(sample)
	if math.IsNaN(value) || len(sample) == 0 {
		return estimate{value, math.NaN(), math.NaN()}
	}
	return estimate{value, quantile(sample, 0.025), quantile(sample, 0.975)}
}

// quantile interpolates between the order statistics of a sorted sample
// (Hyndman and Fan's type 7).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if part := at - float64(i); part > 0 && sorted[i] != sorted[i+1] {
		return sorted[i] + part*(sorted[i+1]-sorted[i])
	}
	return sorted[i]
}
