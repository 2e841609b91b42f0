package fit

import (
	"context"

	"hamlet/algos/game"
)

func init() { register("game", solveGame) }

type gameRequest struct {
	A [][]float64 `json:"a" shape:"M×N"`
}

// The exact value and strategies, rounded to the nearest float64. Of several optimal
// strategies the reply has those of one vertex, the same for the same game.
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
