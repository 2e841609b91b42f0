//go:build !amd64 || purego

package triangle

func mulVec(y []float64, a Matrix, x []float64) { mulVecGo(y, a, x) }

func outer(a Matrix, g float64, x []float64) { outerGo(a, g, x) }

func quadratic(a Matrix, x []float64) (diagonal, rest float64) { return quadraticGo(0, 0, a, x) }

func rank(a, by, v []float64, k, next, rows int) { rankGo(a, by, v, k, next, rows) }
