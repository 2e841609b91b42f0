package normal

import (
	"math"
	"testing"
)

func far(got, want, floor float64) float64 { return math.Abs(got-want) / (math.Abs(want) + floor) }

// Reference: mpmath's erfc at 40 digits.
func TestNormalCDF(t *testing.T) {
	for _, row := range [][2]float64{
		{0, 0.5}, {-0.3, 0.38208857781104737}, {-0.7, 0.24196365222307303}, {-0.70710678, 0.23975006146213295},
		{-0.71, 0.23885206808998673}, {-1.5, 0.066807201268858066}, {-3, 0.0013498980316300945},
		{-5, 2.8665157187919391e-7}, {-8.8, 6.840807685935546e-19}, {-8.9, 2.7923343749396466e-19},
		{-12, 1.776482112077679e-33}, {-20, 2.7536241186062337e-89}, {-37, 5.7255712225245768e-300},
		{-60, 0}, {math.Inf(-1), 0}, {math.Inf(1), 1},
	} {
		if got := CDF(row[0]); far(got, row[1], 1e-300) > 2e-16*(4+min(row[0]*row[0], 1e4)) {
			t.Errorf("Φ(%v) = %v, want %v", row[0], got, row[1])
		}
		if got := CDF(-row[0]); math.Abs(got-(1-row[1])) > 2e-16 {
			t.Errorf("Φ(%v) = %v, want %v", -row[0], got, 1-row[1])
		}
	}
	for _, q := range []float64{0.5, 0.25, 0.05, 0.025, 1e-3, 1e-9, 1e-16} {
		if z := UpperQuantile(q); far(CDF(-z), q, 0) > 1e-13 {
			t.Errorf("quantile of %v is %v, where Φ is %v", q, -z, CDF(-z))
		}
	}
	if z := UpperQuantile(0.025); math.Abs(z-1.959963984540054) > 1e-15 {
		t.Errorf("the 97.5 %% quantile is %v", z)
	}
}

// Reference: mpmath at 40 digits.
func TestErfcx(t *testing.T) {
	for _, row := range [][2]float64{
		{0, 1.0},
		{0.1, 0.896456979969126637},
		{0.49, 0.620853390273928051},
		{0.5, 0.615690344192925875},
		{0.51, 0.610599169781939955},
		{1, 0.427583576155807004},
		{2.5, 0.210806364061143581},
		{5, 0.110704637733068626},
		{6.2, 0.0898581083197459226},
		{6.3, 0.0884658993528521978},
		{9, 0.0623077240377746841},
		{26, 0.0216835848505629066},
		{40, 0.0141003359833778136},
		{1e3, 0.000564189301453387654},
		{1e7, 5.64189583547753466e-8},
		{1e9, 5.64189583547756287e-10},
		{1e200, 5.64189583547756304e-201},
	} {
		if got := Erfcx(row[0]); !(math.Abs(got-row[1]) <= 4e-15*row[1]) {
			t.Errorf("erfcx(%v) = %v, want %v", row[0], got, row[1])
		}
	}
}
