package game

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// A Boosting is boosting seen as a game (slides, page 35; Y. Freund and R. E.
// Schapire, Game theory, on-line prediction and boosting, 1996). The booster
// picks an example i, the weak learner a hypothesis j, and the booster loses
//
//	M_ij = y_i·h_j(x_i),
//
// +1 if the hypothesis is right and −1 if it is wrong. (The slides have the loss
// (1+M_ij)/2 in {0, 1}; that maps the value v to (1+v)/2 and changes no strategy.)
// A mixed strategy of the booster is a weighting D of the examples, and the best
// answer to it has the edge max_j Σ_i D_i M_ij = 1 − 2ε. A mixed strategy of the
// weak learner is a vote, and the booster's best answer finds the smallest margin
// min_i Σ_j votes_j M_ij. The minimax theorem says
//
//	min_D edge(D) = v = max_votes margin(votes).
//
// So v > 0, a weak learner that always has an edge, and a vote that separates
// the examples are one and the same.
type Boosting struct {
	Value float64   // v, in [−1, 1] for hypotheses of ±1
	D     []float64 // by example: no hypothesis has an edge above v on these weights
	Votes []float64 // by hypothesis: no example has a margin below v with them
}

// NewBoosting solves the game of labels y and hypotheses h, where h[i][j] is
// h_j(x_i), ±1 or a confidence of either sign. The error says what is wrong with
// the labels or the shape, or which entry is not finite; or it is ctx's.
func NewBoosting(ctx context.Context, h [][]float64, y []float64) (Boosting, error) {
	if err := checkBoosting(h, y); err != nil {
		return Boosting{}, err
	}
	gains := make([][]float64, len(h))
	for i, row := range h {
		gains[i] = make([]float64, len(row))
		for j, v := range row {
			gains[i][j] = -y[i] * v
		}
	}
	s, err := Solve(ctx, gains)
	if err != nil {
		return Boosting{}, err
	}
	return Boosting{Value: 0 - s.Value, D: s.P, Votes: s.Q}, nil
}

func checkBoosting(h [][]float64, y []float64) error {
	if err := check(h); err != nil {
		return err
	}
	if len(h) != len(y) {
		return fmt.Errorf("predictions for %d examples and labels for %d", len(h), len(y))
	}
	var errs []error
	for i, v := range y {
		if v != 1 && v != -1 {
			errs = append(errs, fmt.Errorf("label %d is %v: want +1 or -1", i, v))
		}
	}
	return errors.Join(errs...)
}

// Edge returns max_j Σ_i d_i y_i h_j(x_i), which is 1 − 2ε of the best hypothesis
// on weights d that sum to 1. It is at least the game's value. It panics if d has
// not one weight for each example.
func Edge(h [][]float64, y, d []float64) float64 {
	checkLength(len(d), len(h))
	_, edge := answer(h, y, d)
	return edge
}

// answer returns the first hypothesis with the largest edge on d, and that edge.
func answer(h [][]float64, y, d []float64) (j int, edge float64) {
	edge = math.Inf(-1)
	for k := range h[0] {
		e := 0.0
		for i, row := range h {
			e += float64(float64(d[i]*y[i]) * row[k])
		}
		if e > edge {
			j, edge = k, e
		}
	}
	return j, edge
}

// Margin returns min_i y_i Σ_j w_j h_j(x_i)/Σ|w|, the smallest normalised margin
// of a vote with the weights w, of which one is not 0. If none is negative, or
// −h is a hypothesis with each h, it is at most the game's value. It panics if w
// has not one weight for each hypothesis.
func Margin(h [][]float64, y, w []float64) float64 {
	checkLength(len(w), len(h[0]))
	total := 0.0
	for _, v := range w {
		total += math.Abs(v)
	}
	least := math.Inf(1)
	for i, row := range h {
		f := 0.0
		for j, v := range row {
			f += float64(w[j] * v)
		}
		least = min(least, y[i]*f/total)
	}
	return least
}

// Play repeats the game (slides, page 35, "repeated play"): in each of the given
// number of rounds the weak learner answers the booster's weights with the first
// hypothesis of the largest edge, and the booster multiplies D_i by e^{−ηM_ij}. It
// returns the mean of the weights and of the answers, and as Value the mean edge.
//
// That is AdaBoost with the same α = η in every round. It needs no linear
// program, and only the best answer of each round. With |h| ≤ 1, N examples and
// η = √(2 ln N/T), the default for rate 0,
//
//	v − Δ ≤ margin(Votes) ≤ v ≤ edge(D) ≤ Value ≤ v + Δ,   Δ = √(2 ln N/T)
//
// (Freund and Schapire, Adaptive game playing using multiplicative weights, 1999,
// corollary 4, for losses in [−1, 1]: Hoeffding's lemma bounds what a round adds
// to ln Σ e^{−η·ΣM} by −η·edge + η²/2, and the smallest of the ΣM bounds it from
// below.) A round costs O(N·hypotheses) and allocates nothing. It panics if rounds
// is not positive or rate negative.
func Play(ctx context.Context, h [][]float64, y []float64, rounds int, rate float64) (Boosting, error) {
	if rounds < 1 || !(rate >= 0) {
		panic(fmt.Sprintf("game: %d rounds at rate %v", rounds, rate))
	}
	if err := checkBoosting(h, y); err != nil {
		return Boosting{}, err
	}
	n := len(h)
	if rate == 0 {
		rate = Gap(n, rounds)
	}
	b := Boosting{D: make([]float64, n), Votes: make([]float64, len(h[0]))}
	margins, d := make([]float64, n), make([]float64, n)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return Boosting{}, err
		}
		least := margins[0]
		for _, m := range margins {
			least = min(least, m)
		}
		sum := 0.0
		for i, m := range margins {
			d[i] = logistic.Exp(float64(rate * (least - m)))
			sum += d[i]
		}
		for i := range d {
			d[i] /= sum
			b.D[i] += d[i] / float64(rounds)
		}
		j, edge := answer(h, y, d)
		b.Votes[j] += 1 / float64(rounds)
		b.Value += edge / float64(rounds)
		for i := range margins {
			margins[i] += float64(y[i] * h[i][j])
		}
	}
	return b, nil
}

// Gap returns √(2 ln N/T), the default rate of Play and how far it may be from the value,
// for N examples and T rounds.
func Gap(examples, rounds int) float64 {
	return math.Sqrt(2 * logistic.Log(float64(examples)) / float64(rounds))
}
