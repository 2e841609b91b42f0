package score

import "testing"

// A probability that is neither 0 nor 1 is printed as neither.
func TestProbability(t *testing.T) {
	for p, want := range map[float64]string{
		0: "0.000", 1e-7: "1e-07", 0.0004: "4e-04", 0.0006: "0.001", 0.25: "0.250", 0.9994: "0.999",
		0.9996: "0.9996", 0.99999: "0.99999", 0.999996: "0.999996", 1 - 0x1p-53: "0.9999999999999999", 1: "1.000",
	} {
		if got := probability(p); got != want {
			t.Errorf("probability(%v) = %s, want %s", p, got, want)
		}
	}
}
