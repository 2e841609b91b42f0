package main

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
)

// residue returns max|VΛ − I| over all entries. V and Λ are the ones that p learns with: Λ is the
// prior's plus the h·xxᵀ of each event, V follows by rank-1 steps and is computed from Λ again
// now and then.
func residue(p *blr.Posterior) float64 {
	var v, lambda mat.SymDense
	p.CovarianceTo(&v)
	p.NaturalTo(make([]float64, p.Dim()), &lambda)
	return offInverse(full(&v), full(&lambda), p.Dim())
}

// offInverse returns max|VΛ − I| of two symmetric matrices by rows. It sums each entry in twice
// the digits of a float64, so that it measures V and not its own rounding. It takes D³ steps.
func offInverse(v, lambda []float64, dim int) (worst float64) {
	for i := range dim {
		for j := range dim {
			sum, rest := 0.0, 0.0
			if i == j {
				sum = -1
			}
			column := lambda[j*dim : (j+1)*dim]
			for k, a := range v[i*dim : (i+1)*dim] {
				// Dekker: product + low = a·b and total + lost = sum + product, exactly.
				product := float64(a * column[k])
				low := math.FMA(a, column[k], -product)
				total := sum + product
				back := total - sum
				lost := (sum - (total - back)) + (product - back)
				sum, rest = total, rest+(low+lost)
			}
			worst = max(worst, math.Abs(sum+rest))
		}
	}
	return worst
}

// full returns all of a's entries by rows.
func full(a *mat.SymDense) []float64 {
	n := a.SymmetricDim()
	all := make([]float64, n*n)
	for i := range n {
		for j := range n {
			all[i*n+j] = a.At(i, j)
		}
	}
	return all
}
