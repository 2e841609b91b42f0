package poeboost

import (
	"errors"
	"fmt"

	"hamlet/algos/boost"
	"hamlet/algos/internal/logistic"
)

// DefaultRounds is the number of rounds if a Config has 0.
const DefaultRounds = 50

// State measures an ensemble on its training data, by sample weight.
type State struct {
	MeanLogLikelihood float64 // mean of ln P(y | x, h₁…h_j), nats per example
	TrainError        float64 // fraction of wrong signs; log-odds 0 count as −1
}

// sample is a training set with the state that both boosters share.
type sample struct {
	data    *boost.Data
	y       []float64
	weights []float64 // ω, in [0, 1]
	logOdds []float64 // of y = +1, of the ensemble on each row
	dist    []float64 // D of (7), for the next round
	printed bool      // D without Qᵢ
	rounds  int       // the most rounds to run
	done    int       // Invariant: done ≤ rounds
	stop    boost.Stop
}

// newSample checks the arguments of both boosters; weights may be nil.
func newSample(d *boost.Data, y, weights []float64, rounds int) (sample, error) {
	ω, _, err := d.SampleWeights(weights)
	errs := []error{d.CheckLabels(y), err}
	if rounds == 0 {
		rounds = DefaultRounds
	}
	if rounds < 0 || rounds > boost.MaxRounds {
		errs = append(errs, fmt.Errorf("poeboost: %d rounds: want 1 to %d, or 0 for %d",
			rounds, boost.MaxRounds, DefaultRounds))
	}
	if err := errors.Join(errs...); err != nil {
		return sample{}, err
	}
	n := d.Rows()
	return sample{
		data: d, y: append([]float64(nil), y...), weights: ω, rounds: rounds,
		logOdds: make([]float64, n), dist: make([]float64, n),
	}, nil
}

// weigh sets D by (7) from the log-odds, which are finite.
func (s *sample) weigh() {
	if !ClosedWeightsTo(s.dist, s.y, s.logOdds, s.weights, s.printed) {
		panic("poeboost: no weight is left")
	}
}

// state measures the ensemble.
func (s *sample) state() State { return StateOf(s.y, s.logOdds, s.weights) }

// StateOf measures log-odds of y = +1, with sample weights of a positive sum.
func StateOf(y, logOdds, weights []float64) State {
	var m State
	total := 0.0
	for i, f := range logOdds {
		w := weights[i]
		total += w
		m.MeanLogLikelihood += float64(w * logistic.LogSigmoid(y[i]*f))
		if (f > 0) != (y[i] > 0) {
			m.TrainError += w
		}
	}
	m.MeanLogLikelihood /= total
	m.TrainError /= total
	return m
}

// finished ends training if all rounds are done.
func (s *sample) finished() bool {
	if s.stop == boost.Running && s.done == s.rounds {
		s.stop = boost.Rounds
	}
	return s.stop != boost.Running
}

// Stopped returns why training has ended, or boost.Running.
func (s *sample) Stopped() boost.Stop { return s.stop }

// LogOddsTo writes the ensemble's log-odds of y = +1 on the training data to dst, of
// length N.
func (s *sample) LogOddsTo(dst []float64) {
	checkLengths(len(dst), len(s.logOdds))
	copy(dst, s.logOdds)
}

// WeightsTo writes D of the next round to dst, of length N. It sums to 1.
func (s *sample) WeightsTo(dst []float64) {
	checkLengths(len(dst), len(s.dist))
	copy(dst, s.dist)
}

func checkInputs(n, dim int) {
	if n != dim {
		panic(fmt.Sprintf("poeboost: a vector of length %d for %d inputs", n, dim))
	}
}
