package fit

import (
	"context"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/algos/lab/game"
)

func init() {
	register("game", solveGame)
	register("game.boosting", gameBoosting)
	register("game.play", gamePlay)
}

type gameRequest struct {
	A [][]float64 `json:"a" shape:"M×N"`
}

// Value and strategies are exact, rounded to the nearest float64. If several strategies
// are optimal, the reply has one vertex, the same for the same game.
type gameReply struct {
	Value float64   `json:"value"`
	P     []float64 `json:"p"`
	Q     []float64 `json:"q"`
}

func solveGame(ctx context.Context, q *gameRequest) (*gameReply, error) {
	s, err := game.Solve(ctx, q.A)
	if err != nil {
		return nil, err
	}
	return &gameReply{Value: s.Value, P: s.P, Q: s.Q}, nil
}

// The game of all stumps of x, each with both polarities: the booster weights the rows,
// the weak learner votes for stumps, and the booster loses y·h(x). Rounds is the limit of
// AdaBoost's rounds and the number of the repeated play. Rate is η, √(2 ln N/rounds) if not
// given.
type gameBoostingRequest struct {
	examples
	Rounds int      `json:"rounds" default:"50" in:"[1,1048576]"`
	Rate   *float64 `json:"rate" default:"null" in:"(0,1e6]"`
}

// Stumps are the columns of the game. Value is min over d of the largest edge, and max over
// votes of the least margin.
type gameBoostingReply struct {
	Stumps   []stump       `json:"stumps"`
	Value    float64       `json:"value"`
	D        []float64     `json:"d"`     // by row: no stump has an edge above value
	Votes    []float64     `json:"votes"` // by stump: no row has a margin below value
	AdaBoost adaBoostGame  `json:"adaboost"`
	Hedge    hedgeBoosting `json:"hedge"`
}

// An adaBoostGame is AdaBoost in the game: every edge is at least the value, and the margin
// at most.
type adaBoostGame struct {
	Edges  []float64 `json:"edges"` // 1 − 2ε of each round's stump
	Margin float64   `json:"margin"`
}

// A hedgeBoosting is repeated play, AdaBoost with α = rate in each round. Value − gap ≤
// margin ≤ value ≤ edge ≤ mean_edge ≤ value + gap at the default rate.
type hedgeBoosting struct {
	Rate     float64   `json:"rate"`
	Gap      float64   `json:"gap"` // √(2 ln N/rounds)
	D        []float64 `json:"d"`   // mean weights
	Votes    []float64 `json:"votes"`
	MeanEdge float64   `json:"mean_edge"`
	Edge     float64   `json:"edge"`   // the largest on d
	Margin   float64   `json:"margin"` // the least of votes
}

// mostEntries bounds the entries of a game.
const mostEntries = 1 << 22

func gameBoosting(ctx context.Context, q *gameBoostingRequest) (*gameBoostingReply, error) {
	data, err := boost.NewData(q.X)
	if err != nil {
		return nil, wrong("x", "%w", err)
	}
	switch n := data.Candidates(); {
	case n == 0:
		return nil, wrong("x", "every column is constant: there are no stumps")
	case 2*n > mostEntries/len(q.X):
		return nil, wrong("x", "a game of %d rows and %d stumps, with more than %d entries", len(q.X), 2*n, mostEntries)
	}
	r := &gameBoostingReply{}
	h, stumps := boosting.AllStumps(data)
	for _, s := range stumps {
		r.Stumps = append(r.Stumps, stumpOf(s))
	}
	solved, err := game.NewBoosting(ctx, h, q.Y)
	if err != nil {
		return nil, err
	}
	r.Value, r.D, r.Votes = solved.Value, solved.D, solved.Votes

	ada, err := boost.NewAdaBoost(data, q.Y, boost.AdaBoostConfig{Rounds: q.Rounds})
	if err != nil {
		return nil, err
	}
	if err := ada.Train(ctx); err != nil {
		return nil, err
	}
	for _, o := range ada.Rounds() {
		r.AdaBoost.Edges = append(r.AdaBoost.Edges, 1-2*o.Epsilon)
	}
	r.AdaBoost.Margin = boosting.MarginsOf(ada, q.Y, nil).Min()

	gap := game.Gap(len(q.X), q.Rounds)
	r.Hedge.Rate, r.Hedge.Gap = gap, gap
	if q.Rate != nil {
		r.Hedge.Rate = *q.Rate
	}
	played, err := game.Play(ctx, h, q.Y, q.Rounds, r.Hedge.Rate)
	if err != nil {
		return nil, err
	}
	r.Hedge.D, r.Hedge.Votes, r.Hedge.MeanEdge = played.D, played.Votes, played.Value
	r.Hedge.Edge, r.Hedge.Margin = game.Edge(h, q.Y, played.D), game.Margin(h, q.Y, played.Votes)
	return r, nil
}

// A is the gains of the row player, as in game. The row player hedges, and the column
// player gives the best response in every round. Rate is η for gains scaled to [−1, 1],
// √(2 ln M/rounds) if not given.
type gamePlayRequest struct {
	A      [][]float64 `json:"a" shape:"M×N" in:"[-1e300,1e300]"`
	Rounds int         `json:"rounds" default:"50" in:"[1,1048576]"`
	Rate   *float64    `json:"rate" default:"null" in:"(0,1e6]"`
}

// P and q are the means over the rounds, mean the row player's mean gain. Guarantee is what
// p gains at least, exposure what q loses at most. Value − gap ≤ mean ≤ guarantee ≤ value
// ≤ exposure ≤ value + gap at the default rate.
type gamePlayReply struct {
	Mean      float64   `json:"mean"`
	P         []float64 `json:"p"`
	Q         []float64 `json:"q"`
	Guarantee float64   `json:"guarantee"`
	Exposure  float64   `json:"exposure"`
	Rate      float64   `json:"rate"`
	Gap       float64   `json:"gap"`
}

func gamePlay(ctx context.Context, q *gamePlayRequest) (*gamePlayReply, error) {
	rate := 0.0
	if q.Rate != nil {
		rate = *q.Rate
	}
	p, err := game.PlayMatrix(ctx, q.A, q.Rounds, rate)
	if err != nil {
		return nil, err
	}
	return &gamePlayReply{
		Mean: p.Mean, P: p.P, Q: p.Q, Guarantee: p.Guarantee, Exposure: p.Exposure, Rate: p.Rate, Gap: p.Gap,
	}, nil
}
