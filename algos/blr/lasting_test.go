package blr

import (
	"math"
	"testing"
)

// What b.N events leave of the precision of V and Λ at D = 58, without forgetting. V is compared
// with Λ one event before it is computed again. Λ's diagonal is compared with the same sum in
// twice the digits.
//
//	go test -run - -bench Lasting -benchtime 10000000x -v ./algos/blr
func BenchmarkLasting(b *testing.B) {
	const dim = 58
	p, s := mustNew(b, Config{Dim: dim}), newStream(76, dim)
	var sum, lost [dim]float64
	for j := range sum {
		sum[j] = p.precision.At(dim, j, j)
	}
	worst, apart, next := 0.0, 0.0, 1000
	for n := 1; n <= b.N; n++ {
		site := p.Update(s.next())
		for j, x := range site.X { // Knuth's exact sum; hx rounds as AddOuter does
			term := float64(float64(site.H*x) * x)
			total := sum[j] + term
			back := total - sum[j]
			lost[j] += (sum[j] - (total - back)) + (term - back)
			sum[j] = total
		}
		if n != next-1 && n != b.N {
			continue
		}
		apart = 0
		for j := range sum {
			apart = max(apart, math.Abs(p.precision.At(dim, j, j)-sum[j]-lost[j])/sum[j])
		}
		r := residualOf(p)
		worst = max(worst, r)
		b.Logf("%d events: max|VΛ−I| = %.2g, Λ differs by %.2g of it, %+v", n, r, apart, p.Factorings())
		if next < 1_000_000 {
			next *= 10
		} else {
			next += 1_000_000
		}
	}
	if worst > 1e-10 || apart > 1e-9 {
		b.Errorf("max|VΛ−I| = %g, Λ differs by %g of it", worst, apart)
	}
}
