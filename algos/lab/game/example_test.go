package game_test

import (
	"context"
	"fmt"

	"hamlet/algos/lab/game"
)

// Odd or Even (slides, page 32): the row player wins the sum if it is odd.
func Example() {
	s, err := game.Solve(context.Background(), [][]float64{
		{-2, 3},
		{3, -4},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("value %.4f, p = %.4f, q = %.4f\n", s.Value, s.P, s.Q)
	// Output:
	// value 0.0833, p = [0.5833 0.4167], q = [0.5833 0.4167]
}

// Four examples, three hypotheses: each is wrong on one of the first three
// examples, and a vote of all is right with a margin of a third.
func ExampleNewBoosting() {
	y := []float64{1, 1, -1, -1}
	h := [][]float64{ // a row for each example
		{-1, 1, 1},
		{1, -1, 1},
		{-1, -1, 1},
		{-1, -1, -1},
	}
	b, err := game.NewBoosting(context.Background(), h, y)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("value %.3f\n", b.Value)
	fmt.Printf("weights %.3f: best edge %.3f\n", b.D, game.Edge(h, y, b.D))
	fmt.Printf("votes %.3f: least margin %.3f\n", b.Votes, game.Margin(h, y, b.Votes))
	// Output:
	// value 0.333
	// weights [0.333 0.333 0.333 0.000]: best edge 0.333
	// votes [0.333 0.333 0.333]: least margin 0.333
}
