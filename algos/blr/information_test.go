package blr

import (
	"math"
	"testing"
)

// Information against the entropies by a fine quadrature, over moments of all sizes.
func TestInformation(t *testing.T) {
	entropyOf := func(p float64) float64 {
		if p <= 0 || p >= 1 {
			return 0
		}
		return -p*math.Log(p) - (1-p)*math.Log1p(-p)
	}
	for _, m := range []float64{0, 0.1, -0.7, 2, -5, 12, 40} {
		for _, a := range []float64{1e-6, 0.01, 0.3, 1, 4, 20, 35.9, 36.1, 90, 400} {
			p := expect(m, a, func(z float64) float64 { return 1 / (1 + math.Exp(-z)) })
			want := entropyOf(p) - expect(m, a, func(z float64) float64 { return entropyOf(1 / (1 + math.Exp(-z))) })
			got := Information(m, a)
			if math.Abs(got-want) > 1e-8 || got != Information(-m, a) {
				t.Errorf("m=%v a=%v: %v, want %v, and the same at −m", m, a, got, want)
			}
		}
		if got := Information(m, 0); got != 0 {
			t.Errorf("m=%v a=0: %v, want 0", m, got)
		}
	}
	for _, c := range []struct{ m, a, want float64 }{
		{0, math.MaxFloat64, math.Ln2}, {0, math.Inf(1), math.Ln2}, {math.Inf(1), 1, 0}, {-1e300, 1e3, 0},
	} {
		if got := Information(c.m, c.a); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("m=%v a=%v: %v, want %v", c.m, c.a, got, c.want)
		}
	}
	if got := Information(math.NaN(), 1); got == got {
		t.Errorf("of no number: %v", got)
	}
}
