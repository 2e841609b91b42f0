//go:build !amd64 || purego

package triangle

func cornerQuads(s, c, x *[16]float64) { cornerQuadsGo(s, c, x) }

func bothQuads(s *[16]float64, y, x []float64, by *[16]float64, r0, r1, r2, r3 []float64) {
	bothQuadsGo(s, y, x, by, r0, r1, r2, r3)
}

func dots4(dst *[4]float64, v, x []float64) { dots4Go(dst, v, x) }

func addRows(y, by, v []float64) { addRowsGo(y, by, v) }
