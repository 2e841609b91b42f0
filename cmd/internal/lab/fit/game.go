package fit

import (
	"context"

	"hamlet/algos/lab/game"
)

func init() { register("game", solveGame) }

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
