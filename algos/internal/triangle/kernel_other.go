//go:build !amd64 || purego

package triangle

func outer4(r0, r1, r2, r3 []float64, g *[4]float64, x []float64) {
	outer4Go(r0, r1, r2, r3, g, x)
}
