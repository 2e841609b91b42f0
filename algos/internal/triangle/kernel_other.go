//go:build !amd64 || purego

package triangle

func outer4(r0, r1, r2, r3 []float64, g *[4]float64, x []float64) {
	outer4Go(r0, r1, r2, r3, g, x)
}

func dot4(s *[4]float64, r0, r1, r2, r3, x []float64) { dot4Go(s, r0, r1, r2, r3, x) }

func both4(s *[4]float64, y, r0, r1, r2, r3 []float64, by *[4]float64, x []float64) {
	both4Go(s, y, r0, r1, r2, r3, by, x)
}
