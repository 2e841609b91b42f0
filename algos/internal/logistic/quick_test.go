package logistic

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestQuickLog(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	worst := 0.0
	for i := range 400_000 {
		x := math.Exp(60 * (r.Float64() - 0.5))
		if i%2 == 0 {
			x = 1 + (r.Float64()-0.5)*math.Exp(-30*r.Float64())
		}
		// Log is right to an ulp, which is 7e−15 at most here.
		worst = max(worst, math.Abs(QuickLog(x)-Log(x)))
	}
	for _, x := range []float64{1, 2, 0.5, math.MaxFloat64, 0x1p-1022, 1 - 0x1p-53, 1 + 0x1p-52} {
		worst = max(worst, math.Abs(QuickLog(x)-Log(x)))
	}
	if worst > 1e-12 {
		t.Errorf("error %g, want at most 1e−12", worst)
	}
}

func BenchmarkQuickLog(b *testing.B) { bench(b, QuickLog, 1e-3, 1e3) }
