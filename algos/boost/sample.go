package boost

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// CheckLabels returns an error unless y has a label ±1 for each row.
func (d *Data) CheckLabels(y []float64) error {
	if len(y) != d.rows {
		return fmt.Errorf("boost: %d labels for %d rows", len(y), d.rows)
	}
	for i, v := range y {
		if v != 1 && v != -1 {
			return fmt.Errorf("boost: label %d is %v: want +1 or -1", i, v)
		}
	}
	return nil
}

// SampleWeights returns a copy of the weights ω of the examples, and their sum;
// nil weights are 1 each. Divided by the sum they are the distribution that
// boosting starts from. The error says which weight is negative or not finite, or
// that the sum is 0 or lies beyond 2^±900.
func (d *Data) SampleWeights(weights []float64) (ω []float64, sum float64, err error) {
	ω = make([]float64, d.rows)
	if weights == nil {
		for i := range ω {
			ω[i] = 1
		}
		return ω, float64(d.rows), nil
	}
	if len(weights) != d.rows {
		return nil, 0, fmt.Errorf("boost: %d sample weights for %d rows", len(weights), d.rows)
	}
	for i, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return nil, 0, fmt.Errorf("boost: sample weight %d is %v: want a finite number that is not negative", i, w)
		}
		ω[i] = w
		sum += w
	}
	if !(sum >= 0x1p-900 && sum <= 0x1p900) {
		return nil, 0, fmt.Errorf("boost: sample weights add up to %v: want a sum from 2⁻⁹⁰⁰ to 2⁹⁰⁰", sum)
	}
	return ω, sum, nil
}

// A Stop says why a booster has ended.
type Stop uint8

const (
	Running     Stop = iota // it has not
	Rounds                  // all rounds that were asked for are done
	NoCandidate             // every feature is constant
	NoEdge                  // the best hypothesis has ε ≥ ½: it and all others are no better than a coin
	Separated               // the last hypothesis had ε ≤ 1e−10
	NoDescent               // −⟨∇C, h⟩ ≤ 0 for the best h: no direction of descent
	NoMinimum               // the cost still falls at the longest step
)

// String returns the reason in words.
func (s Stop) String() string {
	return [...]string{"running", "rounds", "no candidate", "no edge", "separated", "no descent", "no minimum"}[s]
}

// An edge of at most this many units of fixed point counts as 0. A stump that was
// the last round's has ε = ½ on paper and ½ ± 1e−16 in floating point.
const noEdge = tie

// sample is what all boosters keep of a training set.
type sample struct {
	data    *Data
	y       []float64
	weights []float64 // ω
	total   float64   // Σω
	dist    []float64 // D, the distribution of the coming round
	f       []float64 // f(xᵢ) so far
	signed  []int64   // Dy in fixed point
	rounds  int       // how many are wanted
	done    int
	stop    Stop
}

const defaultRounds = 50

// newSample checks what all boosters are given; the caller joins the error with
// those of its own fields.
func newSample(d *Data, y, weights []float64, rounds int) (sample, error) {
	errs := []error{d.CheckLabels(y)}
	ω, total, err := d.SampleWeights(weights)
	errs = append(errs, err)
	if rounds == 0 {
		rounds = defaultRounds
	}
	if rounds < 0 || rounds > MaxRounds {
		errs = append(errs, fmt.Errorf("boost: %d rounds: want 1 to %d, or 0 for %d", rounds, MaxRounds, defaultRounds))
	}
	if err := errors.Join(errs...); err != nil {
		return sample{}, err
	}
	s := sample{data: d, y: append([]float64(nil), y...), weights: ω, total: total, rounds: rounds}
	s.dist, s.f = make([]float64, d.rows), make([]float64, d.rows)
	s.signed = make([]int64, d.rows)
	for i, w := range ω {
		s.dist[i] = w / total
	}
	return s, nil
}

// MaxRounds bounds the rounds of a booster.
const MaxRounds = 1 << 20

// logSize returns the room made beforehand for what rounds leave, so that they
// allocate nothing. A booster of more rounds makes room as it goes, in doubling
// steps.
func (s *sample) logSize() int { return min(s.rounds, 1<<13) }

// trainError returns the share, by sample weight, of the examples that f gets
// wrong; f = 0 counts as −1.
func (s *sample) trainError() float64 {
	wrong := 0.0
	count := [2]float64{0, 1}
	for i, f := range s.f {
		k := 0 // no branch: it could not be foreseen
		if (f > 0) != (s.y[i] > 0) {
			k = 1
		}
		wrong += float64(s.weights[i] * count[k])
	}
	return wrong / s.total
}

// Stopped returns why training has ended, or Running.
func (s *sample) Stopped() Stop { return s.stop }

// FTo writes f(xᵢ) of the examples so far to dst, of length N.
func (s *sample) FTo(dst []float64) {
	s.data.check(len(dst))
	copy(dst, s.f)
}

// WeightsTo writes D, the distribution over the examples that the next round
// would see, to dst, of length N. It sums to 1.
func (s *sample) WeightsTo(dst []float64) {
	s.data.check(len(dst))
	copy(dst, s.dist)
}

// finished ends training if all rounds are done.
func (s *sample) finished() bool {
	if s.stop == Running && s.done == s.rounds {
		s.stop = Rounds
	}
	return s.stop != Running
}

// train runs rounds until step has none or ctx is cancelled.
func train(ctx context.Context, step func() bool) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("boost: stopped between rounds: %w", context.Cause(ctx))
		}
		if !step() {
			return nil
		}
	}
}
