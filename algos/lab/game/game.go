// Package game solves finite two-person zero-sum games, boosting among them.
//
// A game is a matrix A. The row player picks a row i, the column player a column
// j, and the row player gains a_ij, which the other loses. With mixed strategies
// p over rows and q over columns the row player's mean gain is pᵀAq, and von
// Neumann's minimax theorem says that the order of play does not matter,
//
//	max_p min_q pᵀAq = min_q max_p pᵀAq = v,
//
// the value. An optimal p gains at least v in every column, an optimal q gives
// away at most v in every row. Source: the boosting slides, section 3, pages
// 30–34; J. von Neumann (1928).
//
// # Solving
//
// Add a constant to A so that all entries of the result S are positive; that adds
// it to v and changes no strategy. With u = q/v the optimal q is the solution of
// the linear program
//
//	maximise Σu subject to Su ≤ 1, u ≥ 0,   Σu = 1/v,
//
// and p/v that of its dual (G. B. Dantzig 1951). u = 0 is feasible, so the
// simplex method needs no first phase.
//
// The answer is exact. A float64 is a rational number, hence so are v, p and q,
// and they are found in two steps:
//
//  1. The simplex method in floating point ends at a basis: the rows I that it
//     thinks tight and the columns J that it thinks played, as many of the one as
//     of the other. It is only a guess.
//  2. L. S. Shapley and R. N. Snow (Basic solutions of discrete games, 1950)
//     showed that such a square submatrix K = S[I, J], the kernel, determines the
//     rest: with 1 a vector of ones, v = 1/(1ᵀK⁻¹1), q = v·K⁻¹1, p = v·1ᵀK⁻¹. That
//     is solved in integers without fractions (E. H. Bareiss 1968), and the answer
//     is accepted only if p and q have no negative entry and every row and column
//     of the game keeps its inequality: the conditions of optimality, checked
//     without rounding.
//
// If the guess fails (ties that rounding has broken, entries that lie hundreds of
// orders of magnitude apart) the simplex method runs once more, in integers. So
// degenerate games, dominated and duplicate rows, constant matrices and single rows or
// columns are no special cases. If several strategies are optimal, A alone determines
// which is returned, on every machine.
package game

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
)

// A Solution is the value of a game and an optimal mixed strategy of each
// player, correctly rounded: each number is the float64 nearest to the exact
// one, so that a strategy's entries sum to 1 but for those roundings.
type Solution struct {
	Value float64
	P     []float64 // of the row player, who gains at least Value with it
	Q     []float64 // of the column player, who loses at most Value with it
}

// An Exact is a Solution in rational numbers.
type Exact struct {
	Value *big.Rat
	P, Q  []*big.Rat
}

// Solve returns the value and optimal strategies of the game with the gains a of
// the row player. The error says that a has no entries, rows of different
// lengths, or entries that are not finite, or it is ctx's, asked before every
// pivot. It keeps and changes nothing of a.
//
// The pivots cost O(mn) each and are about as many as min(m, n) in practice; the
// kernel costs O(k³) products of integers of some 53·k bits for k rows in play,
// or k·log₂k bits where the entries are ±1.
func Solve(ctx context.Context, a [][]float64) (Solution, error) {
	e, err := SolveExact(ctx, a)
	if err != nil {
		return Solution{}, err
	}
	s := Solution{P: nearest(e.P), Q: nearest(e.Q)}
	s.Value, _ = e.Value.Float64()
	return s, nil
}

// nearest rounds each number to the nearest float64.
func nearest(r []*big.Rat) []float64 {
	f := make([]float64, len(r))
	for i, v := range r {
		f[i], _ = v.Float64()
	}
	return f
}

// SolveExact is Solve without the last rounding.
func SolveExact(ctx context.Context, a [][]float64) (Exact, error) {
	if err := check(a); err != nil {
		return Exact{}, err
	}
	g := newIntegers(a)
	rows, columns, ok := guess(ctx, a)
	var w weights
	if ok {
		w, ok = g.kernel(ctx, rows, columns)
	}
	if !ok {
		w = g.simplex(ctx)
	}
	if err := ctx.Err(); err != nil {
		return Exact{}, err
	}
	return g.solution(w), nil
}

// check reports all faults of a.
func check(a [][]float64) error {
	if len(a) == 0 || len(a[0]) == 0 {
		return errors.New("a game without entries: want at least one row and one column")
	}
	var errs []error
	for i, row := range a {
		if len(row) != len(a[0]) {
			errs = append(errs, fmt.Errorf("row %d has %d entries and row 0 has %d", i, len(row), len(a[0])))
		}
		for j, v := range row {
			if !(math.Abs(v) <= math.MaxFloat64) {
				errs = append(errs, fmt.Errorf("row %d, column %d is %v: want a finite gain", i, j, v))
			}
		}
	}
	return errors.Join(errs...)
}

// Guarantee returns min_j Σ_i p_i·a_ij, the least that the row player gains on
// average with the mixed strategy p, whatever the other does. No p guarantees
// more than the value. It panics if p has not one entry for each row.
func Guarantee(a [][]float64, p []float64) float64 {
	checkLength(len(p), len(a))
	least := math.Inf(1)
	for j := range a[0] {
		gain := 0.0
		for i, row := range a {
			gain += float64(p[i] * row[j])
		}
		least = min(least, gain)
	}
	return least
}

// Exposure returns max_i Σ_j a_ij·q_j, the most that the column player loses on
// average with the mixed strategy q. No q is exposed to less than the value. It
// panics if q has not one entry for each column.
func Exposure(a [][]float64, q []float64) float64 {
	checkLength(len(q), len(a[0]))
	most := math.Inf(-1)
	for _, row := range a {
		loss := 0.0
		for j, v := range row {
			loss += float64(v * q[j])
		}
		most = max(most, loss)
	}
	return most
}

func checkLength(strategy, choices int) {
	if strategy != choices {
		panic(fmt.Sprintf("game: a strategy over %d choices where there are %d", strategy, choices))
	}
}
