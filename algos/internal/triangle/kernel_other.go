//go:build !amd64 || purego

package triangle

func mulVec(y []float64, a Matrix, x []float64) { mulVecGo(y, a, x) }

func outer(a Matrix, g float64, x []float64) { outerGo(a, g, x) }

func dot4(s *[4]float64, r0, r1, r2, r3, x []float64) { dot4Go(s, r0, r1, r2, r3, x) }

func rank(row *[tile]float64, by, v []float64) { rankGo(row, by, v) }
