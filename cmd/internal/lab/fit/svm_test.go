package fit

import (
	"math"
	"testing"
)

// The reply certifies itself: the primal and dual values follow from w and alpha, and
// their difference is the gap.
func TestSVMCertificate(t *testing.T) {
	x := [][]float64{{2, 1, 1}, {1, -1, 1}, {0, 2, 1}, {-1, 0, 1}, {-2, 1, 1}, {0.5, -2, 1}, {1, 1, 1}}
	y := []float64{1, 1, -1, -1, -1, 1, -1}
	weights := []float64{1, 1, 1, 1, 1, 1, 2.5}
	r := reply[svmFitReply](t, requestLine(t, "svm.fit", "x", x, "y", y, "weights", weights, "c", 2, "gap", 1e-9))
	square, loss, sum := 0.0, 0.0, 0.0
	w := make([]float64, 3)
	for i, a := range r.Alpha {
		f := 0.0
		for j, v := range x[i] {
			w[j] += a * y[i] * v
			f += r.W[j] * v
		}
		if math.Abs(f-r.F[i]) > 1e-12 {
			t.Errorf("row %d: f is %v, wᵀx is %v", i, r.F[i], f)
		}
		sum += a
		loss += 2 * weights[i] * max(0, 1-y[i]*f)
	}
	for j, v := range w {
		if math.Abs(v-r.W[j]) > 1e-12 {
			t.Errorf("w is %v, Σ αyx is %v", r.W, w)
		}
		square += v * v
	}
	primal, dual := square/2+loss, sum-square/2
	if math.Abs(primal-r.Primal) > 1e-12*primal || math.Abs(dual-r.Dual) > 1e-12*primal || r.Gap > 1e-9*primal {
		t.Errorf("P, D and gap are %v, %v, %v; want %v, %v and at most %v", r.Primal, r.Dual, r.Gap, primal, dual, 1e-9*primal)
	}
}
