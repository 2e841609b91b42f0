package boost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/internal/logistic"
)

// A Stop says why training has ended.
type Stop uint8

const (
	Running     Stop = iota // it has not ended
	Rounds                  // all requested rounds are done
	NoCandidate             // every feature is constant
	NoEdge                  // the best hypothesis has ε ≥ ½
	Separated               // the last hypothesis had ε ≤ 1e−10
	NoDescent               // no hypothesis lowers the cost
	NoMinimum               // the cost still falls at the longest step
)

// String returns the reason in words.
func (s Stop) String() string {
	return [...]string{"running", "rounds", "no candidate", "no edge", "separated", "no descent", "no minimum"}[s]
}

const (
	// MaxRounds bounds the rounds of a booster.
	MaxRounds = 1 << 20

	defaultRounds = 50
)

// A Booster is the common part of all boosters; R is the record of one round.
type Booster[R hypothesis] struct {
	sample
	log  []R         // the rounds done
	step func() bool // runs a round and appends to log, or sets stop and returns false
}

// A hypothesis is what a round adds to f.
type hypothesis interface{ addTo(e *Ensemble) }

// newBooster checks the arguments that all boosters share. The caller adds the
// errors of its own fields and sets step.
func newBooster[R hypothesis](d *Data, y, weights []float64, rounds int) (Booster[R], error) {
	rounds = cmp.Or(rounds, defaultRounds)
	ω, total, err := d.SampleWeights(weights)
	errs := []error{d.CheckLabels(y), err}
	if rounds < 0 || rounds > MaxRounds {
		errs = append(errs, fmt.Errorf("boost: %d rounds: want 1 to %d, or 0 for %d", rounds, MaxRounds, defaultRounds))
	}
	if err := errors.Join(errs...); err != nil {
		return Booster[R]{}, err
	}
	s := sample{
		data: d, y: slices.Clone(y), weights: ω, total: total, rounds: rounds, bound: 1,
		dist: make([]float64, d.rows), f: make([]float64, d.rows), signed: make([]int64, d.rows),
	}
	for i, w := range ω {
		s.dist[i] = w / total
	}
	return Booster[R]{sample: s, log: make([]R, 0, s.logSize())}, nil
}

// Round runs one round. It returns false if training has ended; Stopped says why.
// It allocates nothing in the first 8,192 rounds.
func (b *Booster[R]) Round() bool {
	if b.finished() || !b.step() {
		return false
	}
	b.finished()
	return true
}

// finished ends training if all rounds are done.
func (b *Booster[R]) finished() bool {
	if b.stop == Running && len(b.log) == b.rounds {
		b.stop = Rounds
	}
	return b.stop != Running
}

// Train runs the remaining rounds. If ctx is cancelled, it stops between two rounds
// and returns the cause. The rounds done are kept, and Train may be called again.
func (b *Booster[R]) Train(ctx context.Context) error { return Run(ctx, "boost", b.Round) }

// Run calls round until it returns false. If ctx is cancelled, it stops between two rounds
// and returns the cause, behind the name of the booster's package.
func Run(ctx context.Context, name string, round func() bool) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: stopped between rounds: %w", name, context.Cause(ctx))
		}
		if !round() {
			return nil
		}
	}
}

// Rounds returns what each round found. The caller must not change the slices in it.
func (b *Booster[R]) Rounds() []R { return slices.Clone(b.log) }

// Ensemble returns f(x) = Σ h(x) so far.
func (b *Booster[R]) Ensemble() *Ensemble {
	e := &Ensemble{dim: b.data.dim, grove: grove{room: len(b.log)}}
	for _, r := range b.log {
		r.addTo(e)
	}
	return e
}

// A sample is a training set and the state of boosting after the rounds so far.
type sample struct {
	data    *Data
	y       []float64
	weights []float64 // ω
	total   float64   // Σω
	dist    []float64 // D, the distribution of the next round
	f       []float64 // f(xᵢ) so far
	signed  []int64   // Dy in fixed point
	bound   float64   // ∏Z so far
	rounds  int       // the number requested
	stop    Stop
}

// logSize returns the number of rounds to allocate memory for.
func (s *sample) logSize() int { return min(s.rounds, 1<<13) }

// end ends training before a round is done.
func (s *sample) end(why Stop) bool {
	s.stop = why
	return false
}

// Stopped returns why training has ended, or Running.
func (s *sample) Stopped() Stop { return s.stop }

// FTo writes f(xᵢ) of each example to dst, of length N.
func (s *sample) FTo(dst []float64) {
	s.data.check(len(dst))
	copy(dst, s.f)
}

// WeightsTo writes D, the distribution over the examples for the next round, to
// dst, of length N. It sums to 1.
func (s *sample) WeightsTo(dst []float64) {
	s.data.check(len(dst))
	copy(dst, s.dist)
}

// trainError returns the fraction, by sample weight, of the examples that f gets
// wrong; f = 0 counts as −1.
func (s *sample) trainError() float64 {
	wrong := 0.0
	count := [2]float64{0, 1}
	for i, f := range s.f {
		k := 0 // an index, because a branch would be unpredictable
		if (f > 0) != (s.y[i] > 0) {
			k = 1
		}
		wrong += float64(s.weights[i] * count[k])
	}
	return wrong / s.total
}

// class returns 1 for y = +1 and 0 for −1.
func class(y float64) int {
	if y > 0 {
		return 1
	}
	return 0
}

// A partition has the weights W⁻ and W⁺ under D of each part.
type partition [MaxBins + 1][2]float64

// divide sets p to the weights of the parts; part[i] is the part of row i.
func (s *sample) divide(p *partition, part []byte) {
	*p = partition{}
	for i, k := range part {
		p[k][class(s.y[i])] += s.dist[i]
	}
}

// score returns ½ ln((W⁺+e)/(W⁻+e)), the value of part k.
func (p *partition) score(k int, e float64) float64 {
	return logistic.Log((p[k][1]+e)/(p[k][0]+e)) / 2
}

// add adds the hypothesis with a value for each part to f. It multiplies D by
// e^(−yh)/Z and returns the normaliser Z.
func (s *sample) add(part []byte, values []float64) (z float64) {
	var h [MaxBins + 1]float64
	var factor partition
	copy(h[:], values)
	for k, v := range values {
		factor[k] = [2]float64{logistic.Exp(v), logistic.Exp(-v)}
	}
	for i, k := range part {
		d := float64(s.dist[i] * factor[k][class(s.y[i])])
		s.dist[i] = d
		z += d
		s.f[i] += h[k]
	}
	for i := range s.dist {
		s.dist[i] /= z
	}
	s.bound *= z
	return z
}

// leafRange checks clip and shrink of the leaves; 0 means the default.
func leafRange(clip, shrink, defaultClip, defaultShrink float64) (float64, float64, error) {
	var errs []error
	clip, shrink = cmp.Or(clip, defaultClip), cmp.Or(shrink, defaultShrink)
	if !(clip > 0) {
		errs = append(errs, fmt.Errorf("boost: leaves clipped at ±%v: want a positive number", clip))
	}
	if !(shrink > 0 && shrink <= 1) {
		errs = append(errs, fmt.Errorf("boost: leaves shrunk by %v: want a number in (0, 1]", shrink))
	}
	return clip, shrink, errors.Join(errs...)
}

// checkSmoothing checks e, or s, of a partition's scores.
func checkSmoothing(e float64) error {
	if !(e > 0 && e <= math.MaxFloat64) {
		return fmt.Errorf("boost: smoothing %v: want a positive number", e)
	}
	return nil
}
