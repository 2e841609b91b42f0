//go:build !amd64 || purego

package triangle

func symm4(r0, r1, r2, r3, x, y []float64, xi, s *[16]float64) {
	symm4Go(r0, r1, r2, r3, x, y, xi, s)
}

func rank4x8(r0, r1, r2, r3, gu, u []float64) { rank4x8Go(r0, r1, r2, r3, gu, u) }

func outer4(r0, r1, r2, r3 []float64, g *[4]float64, x []float64) {
	outer4Go(r0, r1, r2, r3, g, x)
}
